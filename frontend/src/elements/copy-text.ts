/**
 * `<copy-text for="ID">` offers a button that copies the text of the element with that id.
 * Without a script there is no button, and the text can still be selected.
 */
class CopyText extends HTMLElement {
  connectedCallback(): void {
    if (this.childElementCount > 0 || !("clipboard" in navigator)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button small";
    button.textContent = "Copy";
    button.addEventListener("click", () => void this.copy(button));
    this.append(button);
  }

  private async copy(button: HTMLButtonElement): Promise<void> {
    const source = document.getElementById(this.getAttribute("for") ?? "");
    try {
      await navigator.clipboard.writeText(source?.textContent?.trim() ?? "");
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy by hand";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  }
}

customElements.define("copy-text", CopyText);
