import { Page } from "../ui/Page";

export default function JobsPage() {
  return <Page title="Jobs">{null}</Page>;
}
