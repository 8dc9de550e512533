/**
 * What drawings over time have in common: they join the source in `data-src` while they are on the page, are drawn anew
 * in the other colours and widths, and say under them what is under the pointer, or newest. Arrow keys move the pointer.
 */
import type uPlot from "uplot";
import { type Source, sourceOf } from "../sources";
import { exact } from "./relative-time";

export abstract class LivePlot<Told> extends HTMLElement {
  protected plots: uPlot[] = [];
  protected readonly drawing = document.createElement("div");
  private readonly readout = document.createElement("p");
  private readonly sizes = new ResizeObserver(() => this.resize());
  private readonly scheme = window.matchMedia("(prefers-color-scheme: dark)");

  /** What is said until the source has answered for the first time. */
  protected abstract readonly waiting: string;
  protected abstract readonly receive: (told: Told | undefined) => void;
  protected abstract readonly redraw: () => void;

  connectedCallback(): void {
    if (!this.contains(this.drawing)) this.replaceChildren(this.drawing, this.readout);
    this.drawing.className = "drawing";
    this.drawing.setAttribute("role", "img");
    this.drawing.tabIndex = 0;
    this.readout.className = "readout";
    this.drawing.addEventListener("keydown", this.walk);
    this.scheme.addEventListener("change", this.redraw);
    this.sizes.observe(this);
    if (this.plots.length === 0) this.write(this.waiting);
    this.source.join(this.receive);
  }

  disconnectedCallback(): void {
    this.drawing.removeEventListener("keydown", this.walk);
    this.scheme.removeEventListener("change", this.redraw);
    this.sizes.disconnect();
    this.source.leave(this.receive);
  }

  protected get source(): Source<Told> {
    return sourceOf<Told>(this.dataset["src"] ?? "");
  }

  /** Return the point under the pointer, the newest one where there is none. */
  protected get index(): number {
    const chosen = this.plots.map((plot) => plot.cursor.idx).find((index) => index != null);
    return chosen ?? (this.plots[0]?.data[0].length ?? 0) - 1;
  }

  protected write(words: string, when?: Date): void {
    if (this.readout.textContent !== words) this.readout.textContent = words;
    this.readout.title = when ? exact(when) : "";
    this.drawing.setAttribute("aria-label", `${this.dataset["title"] ?? ""} over time. ${words}`);
  }

  private resize(): void {
    for (const plot of this.plots) plot.setSize({ width: this.clientWidth, height: plot.height });
  }

  private readonly walk = (event: KeyboardEvent): void => {
    const [plot] = this.plots;
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!plot || move === undefined) return;
    event.preventDefault();
    const last = plot.data[0].length - 1;
    const index = Math.min(last, Math.max(0, (plot.cursor.idx ?? last + 1) + move));
    plot.setCursor({ left: plot.valToPos(plot.data[0][index]!, "x"), top: 1 });
  };
}
