/**
 * `<live-stream src="…">` keeps the page current: each `fragment` event carries HTML whose root has the id of what it
 * replaces; `reload` asks for the whole page (signed out, service deleted).
 *
 * The server sends `pulse` when nothing else is to be told. Who has heard nothing for `SILENCE_MS` may be looking at a
 * page that is not true any more, whatever the connection looks like: the element says so, and since when, and connects
 * anew. `body[data-stale]` lets the rest of the page look like it.
 *
 * A hidden tab holds no connection: browsers allow six per host, and nobody looks. What happened meanwhile comes when
 * the tab is seen again, since the server starts every stream with what changed after `seen`.
 */
import htmx from "htmx.org";
import { spoken } from "../durations";
import { keepingState } from "../keep-state";
import { exact } from "./relative-time";

type Connection = "connecting" | "open" | "lost";
const SILENCE_MS = 40_000; // more than twice the server's pulse
const STALE_MS = 5000; // a restart of the server is over by then
const LOOK_MS = 1000;
const TOO_MANY = 429;
const TOO_MANY_WAIT_MS = 30_000; // what the server asks for

class LiveStream extends HTMLElement {
  private source: EventSource | undefined;
  private seen = "";
  private heardAt = Date.now();
  private shownAt = Date.now();
  private isStale = false;
  private isRefused = false;
  private timer: number | undefined;

  connectedCallback(): void {
    this.seen = this.dataset["seen"] ?? "";
    this.heardAt = Date.now();
    this.timer = window.setInterval(this.look, LOOK_MS);
    document.addEventListener("visibilitychange", this.follow);
    window.addEventListener("pagehide", this.close);
    window.addEventListener("pageshow", this.follow);
    this.follow();
  }

  disconnectedCallback(): void {
    window.clearInterval(this.timer);
    document.removeEventListener("visibilitychange", this.follow);
    window.removeEventListener("pagehide", this.close);
    window.removeEventListener("pageshow", this.follow);
    this.close();
  }

  private readonly follow = (): void => {
    if (document.hidden) return this.close();
    this.shownAt = Date.now();
    this.open();
  };

  private readonly close = (): void => {
    this.source?.close();
    this.source = undefined;
  };

  private open(): void {
    if (this.source) return;
    this.show("connecting");
    const url = new URL(this.getAttribute("src") ?? "", location.href);
    url.searchParams.set("seen", this.seen);
    const source = new EventSource(url);
    source.addEventListener("open", () => this.heard());
    source.addEventListener("error", () => this.lost(source));
    source.addEventListener("pulse", () => this.heard());
    source.addEventListener("fragment", (event: MessageEvent<string>) => this.receive(event));
    source.addEventListener("reload", () => location.reload());
    this.source = source;
  }

  private lost(source: EventSource): void {
    this.show("lost");
    // The browser connects again by itself, unless the answer was no stream (a proxy's 502, a restart).
    if (source.readyState !== EventSource.CLOSED || source !== this.source) return;
    this.close();
    void this.retry(source.url);
  }

  /** Ask why: an EventSource keeps the status to itself. Too many open pages are worth a longer wait and a word. */
  private async retry(url: string): Promise<void> {
    const asking = new AbortController();
    const status = await fetch(url, { signal: asking.signal }).then((response) => response.status, () => 0);
    asking.abort();
    this.isRefused = status === TOO_MANY;
    this.show("lost");
    setTimeout(() => document.hidden || this.open(), this.isRefused ? TOO_MANY_WAIT_MS : 3000);
  }

  private heard(): void {
    this.heardAt = Date.now();
    this.isRefused = false;
    this.show("open");
  }

  /** Say that the page is old once nothing was heard for too long; a connection that is only silent is given up. */
  private readonly look = (): void => {
    if (document.hidden) return;
    const connection = this.dataset["connection"] as Connection;
    if (connection !== "open") {
      this.show(connection);
    } else if (Date.now() - this.heardAt > SILENCE_MS) {
      this.close();
      this.open();
    }
  };

  private receive(event: MessageEvent<string>): void {
    this.heard();
    this.seen = event.lastEventId || this.seen;
    const template = document.createElement("template");
    template.innerHTML = event.data;
    const fresh = template.content.firstElementChild;
    const target = fresh && document.getElementById(fresh.id);
    if (!target) return;
    keepingState(target, () => htmx.swap(target, event.data, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 }));
    document.dispatchEvent(new CustomEvent("fairlead:changed", { detail: fresh.id }));
    this.announce(fresh);
  }

  /** Say what changed in words, once; the numbers that move every second are not read out. */
  private announce(fresh: Element): void {
    const sentence = fresh.getAttribute("data-announce");
    if (sentence) this.say(sentence);
  }

  private say(sentence: string): void {
    const voice = document.getElementById("announcer");
    if (voice && voice.textContent !== sentence) voice.textContent = sentence;
  }

  private show(connection: Connection): void {
    const wasStale = this.isStale;
    this.isStale = connection !== "open" && Date.now() - Math.max(this.heardAt, this.shownAt) > STALE_MS;
    this.dataset["connection"] = connection;
    this.textContent = this.label(connection);
    this.title = this.isStale ? `Heard last ${exact(new Date(this.heardAt))}` : "";
    if (this.isStale === wasStale) return;
    document.body.toggleAttribute("data-stale", this.isStale);
    this.say(this.isStale ? "The page is not live any more" : "The page is live again");
  }

  private label(connection: Connection): string {
    if (connection === "open") return "Live";
    if (this.isRefused) return "Not live: too many live pages are open. Close some";
    if (!this.isStale) return connection === "lost" ? "Reconnecting" : "Connecting";
    return `Not live: this is how it was ${spoken(Date.now() - this.heardAt)} ago. Reconnecting`;
  }
}

customElements.define("live-stream", LiveStream);
