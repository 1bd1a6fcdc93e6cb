// The theme searches in a worker. Browsers start none for a page that is opened from the disk: there, a
// hidden frame runs the worker's script. (The theme fetches a shim of its own unless one has this name.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.started = new Promise((resolve) => {
        this.frame.addEventListener("load", () => this.start(url, resolve), { once: true });
      });
      document.body.append(this.frame);
    }

    start(url, resolve) {
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      script.addEventListener("load", () => resolve(inner));
      script.src = url;
      inner.document.body.append(script);
    }

    postMessage(data) {
      this.started.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
