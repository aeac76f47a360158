import { Page } from "../ui/Page";

export default function SessionPage() {
  return <Page title="Session">{null}</Page>;
}
