/**
 * `<step-clock data-since="…" data-until="…">` counts how long a step has lasted, and down to the end of its hold.
 * Without a script its content stays, which says since when.
 */
import { spoken } from "../durations";
import { exact } from "./relative-time";

class StepClock extends HTMLElement {
  private timer: number | undefined;
  private readonly elapsed = document.createElement("time");
  private readonly left = document.createElement("span");
  private readonly bar = document.createElement("progress");

  connectedCallback(): void {
    const since = this.dataset["since"] ?? "";
    this.elapsed.dateTime = since;
    this.elapsed.title = `since ${exact(new Date(since))}`;
    this.elapsed.className = "elapsed";
    this.bar.setAttribute("aria-label", "Part of the hold that is over");
    this.replaceChildren(this.elapsed, ...(this.dataset["until"] ? [this.left, this.bar] : []));
    this.show();
    this.timer = window.setInterval(() => this.show(), 1000);
  }

  disconnectedCallback(): void {
    window.clearInterval(this.timer);
  }

  private show(): void {
    const since = Date.parse(this.dataset["since"] ?? "");
    const until = Date.parse(this.dataset["until"] ?? "");
    const now = Date.now();
    this.elapsed.textContent = spoken(now - since);
    if (Number.isNaN(until)) return;
    this.bar.max = until - since;
    this.bar.value = Math.min(until, now) - since;
    this.left.textContent = now < until ? `${spoken(until - now + 999)} of the hold left` : "hold is over";
  }
}

customElements.define("step-clock", StepClock);
