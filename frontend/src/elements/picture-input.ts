/**
 * `<picture-input>` takes a picture by drop, choice or paste, draws it as large as the model's tensor is, and puts its
 * pixels (base64 of red, green, blue) and size into the form. What becomes of them is the server's to say.
 */
type Fit = "cover" | "stretch" | "contain";
const MOST_PIXELS = 450_000; // as base64 they fit into the form's 2 MiB

class PictureInput extends HTMLElement {
  private picture: ImageBitmap | undefined;

  connectedCallback(): void {
    const input = this.querySelector<HTMLInputElement>("input[type=file]");
    input?.addEventListener("change", () => {
      void this.take(input.files?.[0]);
      input.value = "";
    });
    this.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      this.toggleAttribute("data-over", true);
    });
    this.addEventListener("dragleave", () => this.removeAttribute("data-over"));
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.removeAttribute("data-over");
      void this.take(event.dataTransfer?.files[0]);
    });
    this.addEventListener("paste", (event) => void this.take(event.clipboardData?.files[0]));
    for (const name of ["fit", "width", "height"]) {
      this.querySelector(`[data-part="${name}"]`)?.addEventListener("change", () => this.draw());
    }
    this.piece("remove").addEventListener("click", () => this.clear());
    this.clear();
  }

  private async take(file: File | undefined): Promise<void> {
    if (!file) return;
    try {
      this.picture = await createImageBitmap(file);
    } catch {
      return this.complain(`${file.name} is no picture that this browser can read; choose a PNG, JPEG or WebP.`);
    }
    this.draw();
  }

  private draw(): void {
    const picture = this.picture;
    if (!picture) return;
    const [width, height] = [this.side("width"), this.side("height")];
    if (!(width > 0 && height > 0 && width * height <= MOST_PIXELS)) {
      this.clear();
      return this.complain(`${width} by ${height} pixels are too many to be sent from here; at most ${MOST_PIXELS} are.`);
    }
    const canvas = this.piece("canvas") as HTMLCanvasElement;
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (!context) return this.complain("The browser cannot draw the picture; put its values in as numbers.");
    context.fillStyle = "white"; // behind what is transparent
    context.fillRect(0, 0, width, height);
    context.imageSmoothingQuality = "high";
    const [x, y, w, h] = placed(picture, width, height, (this.piece("fit") as HTMLSelectElement).value as Fit);
    context.drawImage(picture, x, y, w, h);
    this.field("pixels").value = encoded(context.getImageData(0, 0, width, height).data);
    this.field("size").value = `${width}x${height}`;
    this.complain("");
    this.show(true);
  }

  private clear(): void {
    this.picture = undefined;
    this.field("pixels").value = this.field("size").value = "";
    this.complain("");
    this.show(false);
  }

  private show(isThere: boolean): void {
    for (const name of ["canvas", "remove"]) this.piece(name).hidden = !isThere;
    this.piece("hint").hidden = isThere;
  }

  private complain(problem: string): void {
    this.piece("problem").textContent = problem;
  }

  private side(name: string): number {
    return Math.round(Number(this.field(name).value));
  }

  private field(name: string): HTMLInputElement {
    return this.piece(name) as HTMLInputElement;
  }

  private piece(name: string): HTMLElement {
    const found = this.querySelector<HTMLElement>(`[data-part="${name}"]`);
    if (!found) throw new Error(`<picture-input> has no part ${name}`);
    return found;
  }
}

/** Where the picture is drawn, as x, y, width, height. */
function placed(picture: ImageBitmap, width: number, height: number, fit: Fit): [number, number, number, number] {
  if (fit === "stretch") return [0, 0, width, height];
  const pick = fit === "cover" ? Math.max : Math.min;
  const scale = pick(width / picture.width, height / picture.height);
  const [w, h] = [picture.width * scale, picture.height * scale];
  return [(width - w) / 2, (height - h) / 2, w, h];
}

function encoded(rgba: Uint8ClampedArray): string {
  let text = "";
  for (let at = 0; at < rgba.length; at += 4) {
    text += String.fromCharCode(rgba[at] ?? 0, rgba[at + 1] ?? 0, rgba[at + 2] ?? 0);
  }
  return btoa(text);
}

customElements.define("picture-input", PictureInput);
