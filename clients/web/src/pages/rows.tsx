// A table: names of columns above rows. A column of numbers is right-aligned; null stands above buttons.
import type { ComponentChildren } from "preact";

type ColumnHead = string | { number: string } | null;

interface Props {
  heads: ColumnHead[];
  // Rows of several lines are tall; a narrow table does not stretch over a wide window.
  shape?: "tall" | "narrow";
  children: ComponentChildren;
}

export function Rows({ heads, shape, children }: Props) {
  return (
    <div class="rows">
      <table class={shape}>
        <thead>
          <tr>
            {heads.map((head, i) =>
              head === null ? (
                <td key={i} />
              ) : (
                <th key={i} scope="col" class={typeof head === "string" ? undefined : "number"}>
                  {typeof head === "string" ? head : head.number}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
