/**
 * `<traffic-plot data-src="…" data-measure="per_second" data-unit="/s" data-title="Requests">` draws one measure of a
 * service's traffic over time, a line for each revision. Under it stand the newest numbers, or those under the pointer;
 * arrow keys move it, on all drawings of the page at once.
 *
 * It keeps its place and its height while the page around it changes (`hx-preserve`).
 */
import uPlot from "uplot";
import { type Colours, coloursOf, cursorOf, shown, timeAxis, valueAxis } from "../plots";
import { LivePlot } from "./live-plot";
import { describe } from "./relative-time";
import type { Measure, RevisionTraffic, Traffic } from "../traffic";

const HEIGHT = 132;
const SYNC = "traffic";
const ASK_MS = 15_000; // the server looks no more often
const LEAST_PERCENT = 1;

class TrafficPlot extends LivePlot<Traffic> {
  protected readonly waiting = "The last hour is on its way.";
  private traffic: Traffic | undefined;
  private timer: number | undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    const source = this.source;
    this.timer = window.setInterval(() => document.hidden || source.askSoon(), ASK_MS);
  }

  override disconnectedCallback(): void {
    window.clearInterval(this.timer);
    super.disconnectedCallback();
  }

  private get measure(): Measure {
    return this.dataset["measure"] as Measure;
  }

  protected readonly receive = (traffic: Traffic | undefined): void => {
    if (!traffic || traffic.at.length < 2) {
      return this.write(traffic ? emptyOf(traffic) : "The last hour cannot be read now.");
    }
    const before = keysOf(this.traffic);
    this.traffic = traffic;
    const [plot] = this.plots;
    if (!plot || keysOf(traffic) !== before) return this.redraw();
    plot.setData(columnsOf(traffic, this.measure));
    this.tell();
  };

  protected readonly redraw = (): void => {
    if (!this.traffic) return;
    for (const plot of this.plots) plot.destroy();
    const colours = coloursOf(this);
    const isStepped = this.measure === "replicas";
    const paths = isStepped ? uPlot.paths.stepped?.({ align: -1 }) : undefined;
    const axis: uPlot.Axis = {
      ...timeAxis(colours, true),
      values: (_plot, splits, _axis, _space, step) => splits.map((each) => ago(-each, step)),
    };
    const options: uPlot.Options = {
      width: this.clientWidth,
      height: HEIGHT,
      padding: [8, 20, 0, 0],
      cursor: cursorOf(SYNC),
      legend: { show: false },
      scales: { x: { time: false }, y: { range: (_, _low, high) => [0, this.top(high)] } },
      axes: [axis, { ...valueAxis(colours, this.measure === "error_percent" ? "percent" : ""), incrs: stepsOf(isStepped) }],
      series: [{}, ...this.traffic.revisions.map((each) => lineOf(each, colours, paths))],
      hooks: { setCursor: [() => this.tell()] },
    };
    this.plots = [new uPlot(options, columnsOf(this.traffic, this.measure), this.drawing)];
    this.tell();
  };

  /** Return where the scale ends: above the highest value, and never so low that a quiet service looks like a loud one. */
  private top(high: number | null): number {
    const least = this.measure === "error_percent" ? LEAST_PERCENT : 1;
    const top = Math.max(least, (high ?? 0) * 1.15);
    return this.measure === "error_percent" ? Math.min(101, top) : top;
  }

  private tell(): void {
    if (!this.traffic) return;
    const index = this.index;
    const when = new Date(this.traffic.at[index]! * 1000);
    const unit = this.dataset["unit"] ?? "";
    const values = this.traffic.revisions
      .filter((each) => each[this.measure][index] != null)
      .map((each) => `${calledOf(each)} ${unit === "%" ? shown(each[this.measure][index], "percent") : shown(each[this.measure][index], "") + unit}`);
    const words = [describe(when, new Date()), ...(values.length > 0 ? values : [nothingAt(this.traffic, index)])];
    this.write(words.join(" · "), when);
  }
}

/** Return what stands in the place of numbers where there are none in the last hour. */
function emptyOf(traffic: Traffic): string {
  return traffic.stopped
    ? "It is stopped: nothing served in the last hour."
    : "Nothing yet: the first numbers come half a minute after it is live.";
}

/** Return why there is no number at a moment. */
function nothingAt(traffic: Traffic, index: number): string {
  if (traffic.revisions.some((each) => each.replicas[index] != null)) return "no requests";
  return traffic.stopped && index === traffic.at.length - 1 ? "it is stopped, nothing serves" : "nothing ran";
}

/** Return what a revision is called where space is short: by its role while it has one, else by its number. */
function calledOf(revision: RevisionTraffic): string {
  return revision.role === "stable" || revision.role === "canary" ? revision.role : `revision ${Number(revision.name.slice(-5))}`;
}

function keysOf(traffic: Traffic | undefined): string {
  return (traffic?.revisions ?? []).map((each) => `${each.name} ${each.role}`).join();
}

/** Return the columns of a drawing; time is in seconds from now, so that the axis says how long ago. */
function columnsOf(traffic: Traffic, measure: Measure): uPlot.AlignedData {
  const now = traffic.at[traffic.at.length - 1]!;
  return [traffic.at.map((each) => each - now), ...traffic.revisions.map((each) => each[measure])];
}

function lineOf(revision: RevisionTraffic, colours: Colours, paths: uPlot.Series.PathBuilder | undefined): uPlot.Series {
  const stroke = { stable: colours.stable, canary: colours.canary, failed: colours.bad }[revision.role] ?? colours.faint;
  return { stroke, width: revision.role === "canary" ? 2 : 1.5, points: { show: false }, spanGaps: false, ...(paths ? { paths } : {}) };
}

function stepsOf(isWhole: boolean): number[] {
  const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
  return isWhole ? whole : [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...whole];
}

/** Return how long ago a label is; all labels of an axis are in minutes, or in seconds where they are less than one apart. */
function ago(seconds: number, step: number): string {
  if (seconds < 1) return "now";
  return step < 60 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

customElements.define("traffic-plot", TrafficPlot);
