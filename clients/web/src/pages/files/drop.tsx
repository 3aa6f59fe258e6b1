// Where files are dropped or chosen.
import { useState } from "preact/hooks";
import { Choose } from "./choose";

interface Props {
  label: string;
  message?: string;
  onFiles(files: File[]): void;
}

export function Drop({ label, message = "", onFiles }: Props) {
  const [isOver, setIsOver] = useState(false);
  return (
    <label
      class={"drop" + (isOver ? " over" : "")}
      onDragOver={(event) => (event.preventDefault(), setIsOver(true))}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsOver(false);
        const files = [...(event.dataTransfer?.files ?? [])];
        if (files.length > 0) {
          onFiles(files);
        }
      }}
    >
      {label}
      <Choose isMany onFiles={onFiles} />
      {message !== "" && <span role="status">{message}</span>}
    </label>
  );
}
