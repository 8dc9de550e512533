// The one script of the pages: htmx for forms that replace a part of the page, and our custom elements.
import htmx from "htmx.org";
import "./elements/copy-text";
import "./elements/evidence-plot";
import "./elements/live-stream";
import "./elements/model-upload";
import "./elements/picture-input";
import "./elements/relative-time";
import "./elements/sign-in-from-fragment";
import "./elements/step-clock";
import "./elements/traffic-plot";
import { takeFocus } from "./keep-state";

// The Content-Security-Policy forbids both inline styles and evaluated scripts.
htmx.config.allowEval = false;
htmx.config.includeIndicatorStyles = false;
// Nor may a style that a browser wrote into an element, as of a text field made larger, be copied into what replaces it.
htmx.config.attributesToSettle = ["class"];
htmx.config.historyEnabled = false;
htmx.config.selfRequestsOnly = true;
// An error of ours comes as a fragment for #notices (see common/http/error_pages.py), so it is shown, not dropped.
htmx.config.responseHandling = [
  { code: "204", swap: false },
  { code: "[23]..", swap: true },
  { code: "[45]..", swap: true, error: true },
];

// What a form narrows, or where an answer says it is, stays in the address: it can be passed on, and a reload finds it.
document.addEventListener("htmx:afterRequest", (event) => {
  const { elt, pathInfo, successful, xhr } = (event as CustomEvent).detail;
  if (!successful) return;
  const narrowed = elt.hasAttribute("data-in-address") ? pathInfo.finalRequestPath : null;
  const address = xhr.getResponseHeader("Page-Address") ?? narrowed;
  if (address !== null) history.replaceState(null, "", address);
});

// A part that is fetched anew every few seconds keeps what the reader has unfolded in it.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target } = (event as CustomEvent<{ target: Element }>).detail;
  const unfolded = [...target.querySelectorAll<HTMLDetailsElement>("details[open][id]")].map((details) => details.id);
  if (unfolded.length === 0) return;
  const unfold = (): void => unfolded.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  document.addEventListener("htmx:afterSwap", unfold, { once: true });
});

// The focus that goes with a form goes to what comes in its place; htmx finds again only what has an id.
let holder = "";
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target } = (event as CustomEvent<{ target: Element }>).detail;
  holder = target.contains(document.activeElement) ? target.id : "";
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (holder) takeFocus(holder);
  holder = "";
  // What went wrong is told where notices are: the question that covers them closes, and gives the focus back.
  const target = event.target as Element;
  if (target.id !== "notices") return;
  for (const open of document.querySelectorAll<HTMLElement>("[popover]:popover-open")) open.hidePopover();
  target.scrollIntoView({ block: "nearest" });
});

// A request that got no answer at all: the server is away.
document.addEventListener("htmx:sendError", () => {
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.dataset["level"] = "error";
  notice.textContent = "Fairlead does not answer. Nothing was changed; try again when it is back.";
  document.getElementById("notices")?.replaceChildren(notice);
});
