import { Page } from "../ui/Page";

export default function SearchPage() {
  return <Page title="Search">{null}</Page>;
}
