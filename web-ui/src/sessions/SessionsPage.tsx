import { Page } from "../ui/Page";

export default function SessionsPage() {
  return <Page title="Sessions">{null}</Page>;
}
