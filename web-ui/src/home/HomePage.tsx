import { Page } from "../ui/Page";

export default function HomePage() {
  return <Page title="Home">{null}</Page>;
}
