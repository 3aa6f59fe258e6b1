import { render } from "preact";
import "./app/visible-text";
import "./app/arrival";
import { Frame } from "./app/frame";
import { AdHoc } from "./pages/files/adhoc";
import { Admin } from "./pages/admin/admin";
import { Compare } from "./pages/compare/compare";
import { Diff } from "./pages/compare/diff";
import { Explore } from "./pages/explore/explore";
import { FunctionPage } from "./pages/function/function-page";
import { Heatmap } from "./pages/heatmap";
import { Help } from "./pages/help";
import { ListProfiles } from "./pages/profiles/list-profiles";
import { Network } from "./pages/directing/network";
import { Policies } from "./pages/directing/policies";
import { Profile } from "./pages/profile/profile";
import { Tasks } from "./pages/directing/tasks";
import { Traces } from "./pages/traces/traces";
import "./styles/tokens.css";
import "./styles/page.css";
import "./styles/print.css";
import { shownPage, type Page } from "./url";

const pages: Record<Page, () => preact.JSX.Element> = {
  explore: Explore,
  profile: Profile,
  diff: Diff,
  traces: Traces,
  profiles: ListProfiles,
  adhoc: AdHoc,
  tasks: Tasks,
  policies: Policies,
  network: Network,
  admin: Admin,
  help: Help,
  compare: Compare,
  function: FunctionPage,
  heatmap: Heatmap,
};

function App() {
  const Shown = pages[shownPage.value];
  return (
    <Frame>
      <Shown />
    </Frame>
  );
}

render(<App />, document.getElementById("page")!);
