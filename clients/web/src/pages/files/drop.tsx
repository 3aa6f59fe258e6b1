// Where files are dropped or chosen.
import { useState } from "preact/hooks";

interface Props {
  label: string;
  message?: string;
  onFiles(files: File[]): void;
}

export function Drop({ label, message = "", onFiles }: Props) {
  const [isOver, setIsOver] = useState(false);
  const take = (files?: FileList | null) => {
    if (files && files.length > 0) {
      onFiles([...files]);
    }
  };
  return (
    <label
      class={"drop" + (isOver ? " over" : "")}
      onDragOver={(event) => (event.preventDefault(), setIsOver(true))}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      {label}
      <input
        type="file"
        multiple
        onChange={(event) => {
          take(event.currentTarget.files);
          // The same file may be chosen again.
          event.currentTarget.value = "";
        }}
      />
      {message !== "" && <span role="status">{message}</span>}
    </label>
  );
}
