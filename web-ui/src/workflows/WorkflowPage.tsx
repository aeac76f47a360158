import { Page } from "../ui/Page";

export default function WorkflowPage() {
  return <Page title="Workflow">{null}</Page>;
}
