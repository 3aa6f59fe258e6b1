// A value with its share of the total, as a number and as a bar behind it.
import { formatShare, formatValue } from "../units";

export function ShareCell({ value, total, unit }: { value: number; total: number; unit: string }) {
  const share = total > 0 ? (100 * value) / total : 0;
  return (
    <td class="number bar-cell" style={{ backgroundSize: `${share.toFixed(2)}% 100%` }}>
      {formatValue(value, unit)} <span class="muted">{formatShare(value, total)}</span>
    </td>
  );
}
