/**
 * `<live-stream src="…">` keeps the page current: each `fragment` event carries HTML whose root has the id of what it
 * replaces; `reload` asks for the whole page (signed out, service deleted).
 *
 * A hidden tab holds no connection: browsers allow six per host, and nobody looks. What happened meanwhile comes when
 * the tab is seen again, since the server starts every stream with what changed after `seen`.
 */
import htmx from "htmx.org";
import { keepingState } from "../keep-state";

type Connection = "connecting" | "open" | "lost";
const LABELS: Record<Connection, string> = { connecting: "Connecting", open: "Live", lost: "Reconnecting" };

class LiveStream extends HTMLElement {
  private source: EventSource | undefined;
  private seen = "";

  connectedCallback(): void {
    this.seen = this.dataset["seen"] ?? "";
    document.addEventListener("visibilitychange", this.follow);
    window.addEventListener("pagehide", this.close);
    window.addEventListener("pageshow", this.follow);
    this.follow();
  }

  disconnectedCallback(): void {
    document.removeEventListener("visibilitychange", this.follow);
    window.removeEventListener("pagehide", this.close);
    window.removeEventListener("pageshow", this.follow);
    this.close();
  }

  private readonly follow = (): void => {
    if (document.hidden) this.close();
    else this.open();
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
    source.addEventListener("open", () => this.show("open"));
    source.addEventListener("error", () => this.lost(source));
    source.addEventListener("fragment", (event: MessageEvent<string>) => this.receive(event));
    source.addEventListener("reload", () => location.reload());
    this.source = source;
  }

  private lost(source: EventSource): void {
    this.show("lost");
    // The browser connects again by itself, unless the answer was no stream (a proxy's 502, a restart).
    if (source.readyState !== EventSource.CLOSED || source !== this.source) return;
    this.close();
    setTimeout(this.follow, 3000);
  }

  private receive(event: MessageEvent<string>): void {
    this.seen = event.lastEventId || this.seen;
    const template = document.createElement("template");
    template.innerHTML = event.data;
    const fresh = template.content.firstElementChild;
    const target = fresh && document.getElementById(fresh.id);
    if (!target) return;
    keepingState(target, () => htmx.swap(target, event.data, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 }));
    this.announce(fresh);
  }

  /** Say what changed in words, once; the numbers that move every second are not read out. */
  private announce(fresh: Element): void {
    const sentence = fresh.getAttribute("data-announce");
    const voice = document.getElementById("announcer");
    if (voice && sentence && voice.textContent !== sentence) voice.textContent = sentence;
  }

  private show(connection: Connection): void {
    this.dataset["connection"] = connection;
    this.textContent = LABELS[connection];
  }
}

customElements.define("live-stream", LiveStream);
