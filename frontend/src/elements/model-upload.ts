/**
 * `<model-upload data-api data-pages [data-model]>` takes a model that is dropped or chosen, one file, several or a
 * folder, as the next version of `data-model` or as a new model, and leads to the page of the version.
 *
 * Its states, of which `data-state` shows one: empty (the zone), ready (name and files to look at), busy (progress,
 * cancel). The server is asked first whether the files could be a version, so that nothing is sent for nothing.
 */
import { chosen, dropped, type Picked } from "../picking";
import { ask, digestOf, send } from "../sending";
import { tarOf } from "../tar";
import { bytes, Rate } from "../units";

type State = "empty" | "ready" | "busy";
const SHOWN_FILES = 8;

class ModelUpload extends HTMLElement {
  private files: Picked[] = [];
  private running: AbortController | undefined;
  private readonly leaving = new AbortController();

  connectedCallback(): void {
    const { signal } = this.leaving;
    for (const input of this.querySelectorAll<HTMLInputElement>("input[type=file]")) {
      input.addEventListener("change", () => {
        this.offer(chosen(input));
        input.value = ""; // so that the same file can be chosen again
      });
    }
    this.piece("form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.upload();
    });
    this.piece("other").addEventListener("click", () => this.begin());
    this.piece("cancel").addEventListener("click", () => this.running?.abort());
    // Over all of the page, so that a file that misses the zone does not replace the page.
    document.addEventListener("dragover", this.over, { signal });
    document.addEventListener("dragleave", this.out, { signal });
    document.addEventListener("drop", this.drop, { signal });
    addEventListener("beforeunload", (event) => this.running && event.preventDefault(), { signal });
    this.show("empty");
  }

  disconnectedCallback(): void {
    this.running?.abort();
    this.leaving.abort();
  }

  private readonly over = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = this.running ? "none" : "copy";
    this.toggleAttribute("data-over", !this.running);
  };

  private readonly out = (event: DragEvent): void => {
    if (!event.relatedTarget) this.removeAttribute("data-over");
  };

  private readonly drop = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.removeAttribute("data-over");
    if (this.running) return;
    dropped(event.dataTransfer).then(
      (files) => this.offer(files),
      () => this.complain("The browser could not read what was dropped; choose the files instead."),
    );
  };

  private offer(files: Picked[]): void {
    if (!files.length) return this.complain("There is no file in it; choose a model's file, such as model.onnx.");
    this.files = files;
    this.show("ready");
    this.complain("");
    const total = files.reduce((sum, { file }) => sum + file.size, 0);
    const rest = files.length - SHOWN_FILES;
    this.piece("files").replaceChildren(
      ...files.slice(0, SHOWN_FILES).map(({ path, file }) => line(path, bytes(file.size))),
      ...(rest > 0 ? [line(`and ${rest} more`, "")] : []),
    );
    this.piece("total").textContent = `${files.length === 1 ? "1 file" : `${files.length} files`}, ${bytes(total)}`;
    const name = this.name;
    if (name && !name.value) name.value = suggested(files[0]?.path ?? "");
    (name ?? this.piece("send")).focus();
    name?.select();
  }

  private begin(): void {
    this.files = [];
    this.show("empty");
    this.complain("");
    this.querySelector<HTMLInputElement>("input[type=file]")?.focus();
  }

  private async upload(): Promise<void> {
    const most = Number(this.dataset["maxFiles"]);
    if (this.files.length > most) {
      return this.complain(`There are ${this.files.length} files; at most ${most} are taken as one version.`);
    }
    const name = this.name;
    name?.toggleAttribute("aria-invalid", !name.validity.valid);
    if (name && !name.validity.valid) {
      this.complain(name.title);
      return name.focus();
    }
    const running = (this.running = new AbortController());
    this.show("busy");
    this.complain("");
    this.piece("cancel").focus();
    try {
      await this.carry(this.dataset["model"] ?? name?.value ?? "", running.signal);
    } catch (error) {
      this.running = undefined;
      this.show("ready");
      this.complain(running.signal.aborted ? "Cancelled; nothing was registered." : sentence(error));
      this.piece("send").focus();
    }
  }

  private async carry(model: string, signal: AbortSignal): Promise<void> {
    const csrf = this.querySelector<HTMLInputElement>("[name=csrfmiddlewaretoken]")?.value ?? "";
    const versions = `${this.dataset["api"]}${encodeURIComponent(model)}/versions`;
    this.say("Asking whether it can be taken");
    const files = this.files.map(({ path, file }) => ({ path, size_bytes: file.size }));
    const how = await ask<{ filename: string; is_archive: boolean }>(
      `${versions}/check`,
      { files, is_new_model: !("model" in this.dataset) },
      csrf,
      signal,
    );
    const body = how.is_archive ? tarOf(this.files) : (this.files[0]?.file ?? new Blob());
    this.say("Computing the digest");
    const sha256 = await digestOf(body, this.progress(body.size), signal);
    this.piece("digest").textContent = `sha256 ${sha256}`;
    this.say(`Uploading ${how.filename}`);
    const progress = this.progress(body.size);
    const follow = (count: number): void => {
      progress(count);
      if (count >= body.size) this.say("Registering");
    };
    const address = `${versions}?filename=${encodeURIComponent(how.filename)}`;
    const version = await send(address, body, { sha256, csrf }, follow, signal);
    this.running = undefined;
    const page = `${this.dataset["pages"]}${encodeURIComponent(model)}/versions/${version.number}/`;
    if (version.isNew) return location.assign(page);
    this.show("ready");
    const link = document.createElement("a");
    link.href = page;
    link.textContent = `version ${version.number}`;
    this.piece("problem").replaceChildren("These files are ", link, " already; nothing new was registered.");
    link.focus();
  }

  /** Show how much of `total` is done, how fast, and how long the rest takes at that rate. */
  private progress(total: number): (count: number) => void {
    const bar = this.piece("bar") as HTMLProgressElement;
    const rate = new Rate();
    return (count) => {
      const done = Math.min(count, total); // an upload's count may have its headers in it
      bar.value = total ? done / total : 1;
      const share = Math.floor(100 * bar.value);
      this.piece("amount").textContent = `${bytes(done)} of ${bytes(total)}`;
      this.piece("share").textContent = `${share} %`;
      this.piece("rate").textContent = rate.told(done, total);
    };
  }

  private say(what: string): void {
    const said = this.piece("doing");
    if (said.textContent === what) return;
    said.textContent = what;
    (this.piece("bar") as HTMLProgressElement).removeAttribute("value");
    for (const part of ["amount", "share", "rate"]) this.piece(part).textContent = "";
  }

  private complain(problem: string): void {
    this.piece("problem").textContent = problem;
  }

  private show(state: State): void {
    this.dataset["state"] = state;
    for (const part of this.querySelectorAll<HTMLElement>("[data-in]")) {
      part.hidden = !(part.dataset["in"] ?? "").split(" ").includes(state);
    }
    if (state !== "busy") this.piece("doing").textContent = this.piece("digest").textContent = "";
  }

  private get name(): HTMLInputElement | null {
    return this.querySelector<HTMLInputElement>("input[name=model]");
  }

  private piece(name: string): HTMLElement {
    const found = this.querySelector<HTMLElement>(`[data-part="${name}"]`);
    if (!found) throw new Error(`<model-upload> has no part ${name}`);
    return found;
  }
}

/** A name for a model out of what was dropped: that of its folder, or of its file where that says something. */
function suggested(path: string): string {
  const first = path.split("/")[0] ?? "";
  const plain = first.replace(/\.(tar\.gz|[a-z0-9]+)$/i, "");
  const name = (path.includes("/") ? first : plain).replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return /^(model|saved_model|xgboost|config|\d+)$/i.test(name) ? "" : name.slice(0, 128);
}

function line(path: string, size: string): HTMLLIElement {
  const item = document.createElement("li");
  const name = document.createElement("span");
  name.textContent = path;
  const length = document.createElement("span");
  length.className = "faint";
  length.textContent = size;
  item.append(name, length);
  return item;
}

function sentence(error: unknown): string {
  if (error instanceof DOMException) return "A file could not be read; it may have changed. Choose it again.";
  return error instanceof Error ? error.message : String(error);
}

customElements.define("model-upload", ModelUpload);
