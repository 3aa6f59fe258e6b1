// Which services take the disk: an estimate, as the server says, with how much of it is extrapolated.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatSelector } from "../../selector";
import { formatCount, formatValue } from "../../units";
import { Failure } from "../notice";
import { Rows } from "../rows";
import { ShareCell } from "../share-cell";

const TIERS = ["profiles", "segments", "rollups", "symbols", "spans", "originals", "other"] as const;
const SERVICES_SHOWN = 30;

type Bytes = Partial<Record<(typeof TIERS)[number] | "bytes", string>>;

interface ServiceDisk extends Bytes {
  serviceName: string;
}

interface DiskAnswer {
  services?: ServiceDisk[];
  totalServices?: string;
  total?: Bytes;
  readPercent?: number;
}

// What the services beyond the shown ones take together.
function subtract(total: Bytes, shown: Bytes[]): Bytes {
  const left = (of: keyof Bytes) => shown.reduce((rest, each) => rest - Number(each[of] ?? 0), Number(total[of] ?? 0));
  return Object.fromEntries([...TIERS, "bytes" as const].map((of) => [of, String(Math.max(0, left(of)))]));
}

export function DiskByService() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("disk", (abort) => call<DiskAnswer>("hearth.v1.AdminService/Disk", { limit: String(SERVICES_SHOWN) }, abort));
  const { services = [], total = {}, totalServices = "0", readPercent = 100 } = answer.value ?? {};
  const whole = Number(total.bytes ?? 0);
  // A tier without any bytes has no column.
  const tiers = TIERS.filter((tier) => Number(total[tier] ?? 0) > 0);
  const rest = Number(totalServices) - services.length;
  const cells = (of: Bytes) => (
    <>
      <ShareCell value={Number(of.bytes ?? 0)} total={whole} unit="bytes" />
      {tiers.map((tier) => (
        <td key={tier} class="number">
          {formatValue(Number(of[tier] ?? 0), "bytes")}
        </td>
      ))}
    </>
  );
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.diskByService(formatValue(whole, "bytes"))}</h2>
      <p class="muted">
        {words.estimated} {readPercent < 100 && words.extrapolated(readPercent.toFixed(1))}
      </p>
      <Failure error={answer.error} />
      {answer.value && services.length === 0 && <p>{words.noApplications}</p>}
      {services.length > 0 && (
        <Rows heads={[words.application, { number: words.bytes }, ...tiers.map((tier) => ({ number: words.tiers[tier] ?? tier }))]}>
          {services.map((service) => (
            <tr key={service.serviceName}>
              <th scope="row">
                <PageLink page="profile" to={{ q: formatSelector([{ name: "service_name", op: "=", value: service.serviceName }]) }}>
                  {service.serviceName}
                </PageLink>
              </th>
              {cells(service)}
            </tr>
          ))}
          {rest > 0 && (
            <tr>
              <th scope="row" class="muted">
                {words.otherServices(formatCount(rest))}
              </th>
              {cells(subtract(total, services))}
            </tr>
          )}
        </Rows>
      )}
    </section>
  );
}
