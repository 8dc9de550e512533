/**
 * `<sign-in-from-fragment>` around the sign-in form signs in by a link such as `/signin/#token=flt_…`.
 * A fragment never reaches a server or its log; it is taken out of the address bar before the form is sent.
 */
class SignInFromFragment extends HTMLElement {
  connectedCallback(): void {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    const form = this.querySelector("form");
    const input = form?.querySelector<HTMLInputElement>("input[name=token]");
    if (!token || !form || !input) return;
    history.replaceState(null, "", location.pathname + location.search);
    input.value = token;
    form.requestSubmit();
  }
}

customElements.define("sign-in-from-fragment", SignInFromFragment);
