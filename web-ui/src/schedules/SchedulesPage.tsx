import { Page } from "../ui/Page";

export default function SchedulesPage() {
  return <Page title="Schedules">{null}</Page>;
}
