// A button that chooses files. The browser's own speaks the language of the browser, whichever the page speaks.
import { pageTexts } from "../../app/page-texts";

export function Choose({ isMany = false, onFiles }: { isMany?: boolean; onFiles(files: File[]): void }) {
  return (
    <span class="choose">
      {pageTexts.value.choose[isMany ? "many" : "one"]}
      <input
        type="file"
        multiple={isMany}
        onChange={({ currentTarget }) => {
          const files = [...(currentTarget.files ?? [])];
          // The same file may be chosen again.
          currentTarget.value = "";
          if (files.length > 0) {
            onFiles(files);
          }
        }}
      />
    </span>
  );
}
