import { Page } from "../ui/Page";

export default function WorkflowsPage() {
  return <Page title="Workflows">{null}</Page>;
}
