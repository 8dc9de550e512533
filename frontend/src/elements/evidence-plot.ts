/**
 * `<evidence-plot data-src="…" data-metric="server_errors">` draws one measurement of a rollout: above what was seen of
 * the canary with its confidence sequence, of stable, and the limit; below how far the evidence has come. The numbers
 * of the newest point stand under it, those under the pointer while there is one; arrow keys move it.
 *
 * It keeps its place and its height while the page around it changes (`hx-preserve`).
 */
import uPlot from "uplot";
import { spoken } from "../durations";
import type { Evidence, Series } from "../evidence";
import { type Colours, coloursOf, cursorOf, shown, timeAxis, valueAxis } from "../plots";
import type { Column } from "../sources";
import { LivePlot } from "./live-plot";

const SEEN_HEIGHT = 168;
const EVIDENCE_HEIGHT = 84;
const FEW = 3; // points that make no line yet

class EvidencePlot extends LivePlot<Evidence> {
  protected readonly waiting = "The history is on its way.";
  private series: Series | undefined;
  private began = 0;

  protected readonly receive = (evidence: Evidence | undefined): void => {
    const inBackground = "background" in this.dataset;
    const found = evidence?.series.find(
      (each) => each.metric === this.dataset["metric"] && each.in_background === inBackground,
    );
    if (!found || found.at.length === 0) {
      return this.write(evidence ? "Nothing was measured yet." : "The history cannot be read now.");
    }
    const steps = new Set(this.series?.step_index).size;
    this.series = found;
    this.began = evidence?.began_at ? Date.parse(evidence.began_at) / 1000 : found.at[0]!;
    if (this.plots.length === 0 || new Set(found.step_index).size !== steps) return this.redraw();
    const [seen, proof] = columnsOf(found, this.began);
    this.plots[0]?.setData(seen);
    this.plots[1]?.setData(proof);
    this.tell();
  };

  protected readonly redraw = (): void => {
    if (!this.series) return;
    for (const plot of this.plots) plot.destroy();
    const [seen, proof] = columnsOf(this.series, this.began);
    const colours = coloursOf(this);
    const shared = { width: this.clientWidth, cursor: cursorOf(this.series.metric), legend: { show: false } };
    const hooks = { setCursor: [() => this.tell()], drawAxes: [(plot: uPlot) => this.markSteps(plot, colours)] };
    const above: uPlot.Options = {
      ...shared,
      hooks,
      height: SEEN_HEIGHT,
      padding: [8, 20, 0, 0],
      scales: { x: { time: false }, y: { range: () => rangeOf(this.series!) } },
      axes: [timeAxis(colours, false), valueAxis(colours, this.series.unit)],
      bands: [{ series: [1, 2], fill: colours.band }],
      series: [
        {},
        { stroke: "transparent", points: { show: false } },
        { stroke: "transparent", points: { show: false } },
        { stroke: colours.bad, width: 1.5, dash: [6, 4], points: { show: false } },
        { stroke: colours.stable, width: 1.5, points: { show: false } },
        { stroke: colours.canary, width: 2, points: { show: seen[0].length <= FEW, size: 5 } },
      ],
    };
    const below: uPlot.Options = {
      ...shared,
      hooks,
      height: EVIDENCE_HEIGHT,
      padding: [4, 20, 0, 0],
      scales: { x: { time: false }, y: { range: [0, 110] } },
      axes: [timeAxis(colours, true), { ...valueAxis(colours, "percent"), splits: [0, 50, 100] }],
      series: [
        {},
        { stroke: colours.bad, width: 1.5, dash: [6, 4], points: { show: false } },
        { stroke: colours.ink, fill: colours.wash, width: 1.5, points: { show: proof[0].length <= FEW, size: 5 } },
      ],
    };
    this.plots = [new uPlot(above, seen, this.drawing), new uPlot(below, proof, this.drawing)];
    this.tell();
  };

  /** Draw a line where each step begins. */
  private markSteps(plot: uPlot, colours: Colours): void {
    const { at, step_index: steps } = this.series!;
    const { top, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.strokeStyle = colours.line;
    for (let index = 1; index < at.length; index++) {
      if (steps[index] === steps[index - 1]) continue;
      const x = Math.round(plot.valToPos(at[index]! - this.began, "x", true));
      plot.ctx.beginPath();
      plot.ctx.moveTo(x, top);
      plot.ctx.lineTo(x, top + height);
      plot.ctx.stroke();
    }
    plot.ctx.restore();
  }

  /** Write the numbers under the cursor, or the newest ones. */
  private tell(): void {
    if (!this.series) return;
    this.write(wordsOf(this.series, this.index, this.began));
  }
}

/** Return the columns of both drawings; time is in seconds since the attempt began. A limit in points is on stable's. */
function columnsOf(series: Series, began: number): [uPlot.AlignedData, uPlot.AlignedData] {
  const time = series.at.map((each) => each - began);
  // Where a step begins all numbers begin anew: a gap, not a line from the old ones to the new ones.
  const breaks = (column: Column): Column =>
    column.map((value, index) => (index > 0 && isNewStep(series, index) && time.length > 2 ? null : value));
  const ends = series.at.map(() => 100);
  return [
    [time, ...[series.high, series.low, limitsOf(series), series.stable, series.canary].map(breaks)],
    [time, ends, series.evidence_percent],
  ];
}

function isNewStep(series: Series, index: number): boolean {
  const next = series.step_index[index + 1];
  return series.step_index[index] !== series.step_index[index - 1] && next === series.step_index[index];
}

function limitsOf(series: Series): Column {
  if (series.unit !== "percentage points") return series.limit;
  return series.limit.map((limit, index) => {
    const stable = series.stable[index];
    return limit === null || stable == null ? null : Math.min(100, stable + limit);
  });
}

/** Return a scale on which canary, stable and limit are well apart; a wide band at the beginning is cut off. */
function rangeOf(series: Series): [number, number] {
  const numbers = [series.canary, series.stable, limitsOf(series)].flat().filter((each) => each !== null);
  if (numbers.length === 0) return [0, 1];
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const room = (high - low || Math.abs(high) || 1) * 0.6;
  const isNearHundred = series.unit === "percent" && high <= 100 && low > 50;
  const top = isNearHundred ? Math.min(101, high + room) : high + room;
  return [low >= 0 && low - room < high * 0.3 ? 0 : low - room, top];
}

function wordsOf(series: Series, index: number, began: number): string {
  const value = (column: Column): string => shown(column[index], series.unit);
  const hasBounds = series.low[index] != null && series.high[index] != null;
  const step = series.step_index[index];
  return [
    `${spoken(Math.round(series.at[index]! - began) * 1000)}${step == null ? "" : `, step ${step + 1}`}`,
    `canary ${value(series.canary)}${hasBounds ? ` (surely ${value(series.low)} to ${value(series.high)})` : ""}`,
    ...(series.stable[index] == null ? [] : [`stable ${value(series.stable)}`]),
    `limit ${shown(limitsOf(series)[index], series.unit)}`,
    `evidence ${shown(series.evidence_percent[index], "percent")}`,
    `n = ${series.canary_requests[index]!.toLocaleString("en")}`,
  ].join(" · ");
}

customElements.define("evidence-plot", EvidencePlot);
