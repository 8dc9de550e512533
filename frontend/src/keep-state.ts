/**
 * Replace a part of the page without taking away what the reader has open in it: focus, unfolded details, an open
 * question. All are found again by id; what is gone in the new part stays gone.
 */
export function keepingState(target: Element, replace: () => void): void {
  const hadFocus = target.contains(document.activeElement);
  const focused = hadFocus ? document.activeElement?.id : undefined;
  const folding = hadFocus && document.activeElement?.matches("details[id] > summary") && document.activeElement.parentElement?.id;
  const unfolded = [...target.querySelectorAll<HTMLDetailsElement>("details[open][id]")].map((details) => details.id);
  const asked = target.querySelector<HTMLElement>("[popover][id]:popover-open")?.id;
  replace();
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (asked) document.getElementById(asked)?.showPopover();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (folding) document.getElementById(folding)?.querySelector("summary")?.focus({ preventScroll: true });
  if (hadFocus) takeFocus(target.id);
}

/** Let the part with that id have the focus where what had it is gone, so that the keyboard goes on from there. */
export function takeFocus(id: string): void {
  const part = document.getElementById(id);
  if (!part || (document.activeElement && document.activeElement !== document.body)) return;
  if (!part.hasAttribute("tabindex")) part.tabIndex = -1;
  part.focus({ preventScroll: true });
}
