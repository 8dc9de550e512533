/**
 * Replace a part of the page without taking away what the reader has in it: focus, unfolded details, an open question,
 * what was typed or chosen. All are found again by id; what is gone in the new part stays gone.
 */
export function keepingState(target: Element, replace: () => void): void {
  const hadFocus = target.contains(document.activeElement);
  const focused = hadFocus ? document.activeElement?.id : undefined;
  const folding = hadFocus && document.activeElement?.matches("details[id] > summary") && document.activeElement.parentElement?.id;
  const unfolded = [...target.querySelectorAll<HTMLDetailsElement>("details[open][id]")].map((details) => details.id);
  const asked = target.querySelector<HTMLElement>("[popover][id]:popover-open")?.id;
  const filled = [...target.querySelectorAll<Field>("input[id], textarea[id], select[id]")].filter(isChanged);
  replace();
  for (const field of filled) fill(document.getElementById(field.id), field);
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (asked) document.getElementById(asked)?.showPopover();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (folding) document.getElementById(folding)?.querySelector("summary")?.focus({ preventScroll: true });
  if (hadFocus) takeFocus(target.id);
}

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

function isChanged(field: Field): boolean {
  if (field instanceof HTMLSelectElement) return [...field.options].some((option) => option.selected !== option.defaultSelected);
  if (field instanceof HTMLInputElement && isTicked(field)) return field.checked !== field.defaultChecked;
  return field.type !== "file" && field.type !== "hidden" && field.value !== field.defaultValue;
}

function isTicked(field: HTMLInputElement): boolean {
  return field.type === "checkbox" || field.type === "radio";
}

/** Give a field what its predecessor had, the cursor's place too. */
function fill(field: Element | null, from: Field): void {
  if (field instanceof HTMLSelectElement) {
    field.value = from.value;
  } else if (field instanceof HTMLInputElement && from instanceof HTMLInputElement && isTicked(from)) {
    field.checked = from.checked;
  } else if ((field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) && !(from instanceof HTMLSelectElement)) {
    const { selectionStart, selectionEnd } = from;
    field.value = from.value;
    if (selectionStart !== null) field.setSelectionRange(selectionStart, selectionEnd);
  }
}

/** Let the part with that id have the focus where what had it is gone, so that the keyboard goes on from there. */
export function takeFocus(id: string): void {
  const part = document.getElementById(id);
  if (!part || (document.activeElement && document.activeElement !== document.body)) return;
  if (!part.hasAttribute("tabindex")) part.tabIndex = -1;
  part.focus({ preventScroll: true });
}
