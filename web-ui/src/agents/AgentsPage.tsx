import { Page } from "../ui/Page";

export default function AgentsPage() {
  return <Page title="Agents">{null}</Page>;
}
