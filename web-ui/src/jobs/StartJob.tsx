import { Dialog } from "../ui/Dialog";

export default function StartJob({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Start a job" onClose={onClose}>
      {null}
    </Dialog>
  );
}
