import { Page } from "../ui/Page";

export default function ComparePage() {
  return <Page title="Compare">{null}</Page>;
}
