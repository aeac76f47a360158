import { Page } from "../ui/Page";

export default function AgentPage() {
  return <Page title="Agent">{null}</Page>;
}
