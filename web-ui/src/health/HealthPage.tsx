import { Page } from "../ui/Page";

export default function HealthPage() {
  return <Page title="Health">{null}</Page>;
}
