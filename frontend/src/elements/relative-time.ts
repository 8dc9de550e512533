/**
 * `<relative-time><time datetime="…">2026-11-21 08:00 UTC</time></relative-time>` shows "3 minutes ago" and keeps the
 * exact time as the tooltip. Without a script the exact time stays.
 */
const STEPS: readonly [limitSeconds: number, unitSeconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [Number.POSITIVE_INFINITY, 86_400, "day"],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** Return `2026-11-21 08:00:00 UTC`, as the pages write an exact time. */
export function exact(when: Date): string {
  return `${when.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function describe(then: Date, now: Date): string {
  const seconds = Math.round((then.getTime() - now.getTime()) / 1000);
  if (Math.abs(seconds) < 5) return "a moment ago";
  const step = STEPS.find(([limit]) => Math.abs(seconds) < limit);
  return step ? words.format(Math.trunc(seconds / step[1]), step[2]) : "";
}

class RelativeTime extends HTMLElement {
  private timer: number | undefined;

  connectedCallback(): void {
    const time = this.querySelector("time");
    if (!time) return;
    time.title ||= time.textContent ?? "";
    this.show(time);
    this.timer = window.setInterval(() => this.show(time), 5000);
  }

  disconnectedCallback(): void {
    window.clearInterval(this.timer);
  }

  private show(time: HTMLTimeElement): void {
    time.textContent = describe(new Date(time.dateTime), new Date());
  }
}

customElements.define("relative-time", RelativeTime);
