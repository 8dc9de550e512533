/**
 * Replace a part of the page without taking away what the reader has open in it: focus, unfolded details, an open
 * question. All are found again by id; what is gone in the new part stays gone.
 */
export function keepingState(target: Element, replace: () => void): void {
  const focused = target.contains(document.activeElement) ? document.activeElement?.id : undefined;
  const unfolded = [...target.querySelectorAll<HTMLDetailsElement>("details[open][id]")].map((details) => details.id);
  const asked = target.querySelector<HTMLElement>("[popover][id]:popover-open")?.id;
  replace();
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (asked) document.getElementById(asked)?.showPopover();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}
