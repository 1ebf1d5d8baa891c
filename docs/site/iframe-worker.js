// Search in pages that are opened as files. Browsers start no worker from file:, so there an invisible frame takes its
// place: the worker's script runs in the frame, and messages go to and fro between the two windows. Material looks for
// a class of this name (its own offline plugin would load one from a server elsewhere).
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      // What is sent before the script has run waits.
      this.early = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.load(url).then(() => {
        const early = this.early;
        this.early = null;
        early.forEach((data) => this.postMessage(data));
      });
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        script.src = new URL(url, location);
        script.onload = done;
        script.onerror = failed;
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      if (this.early) {
        this.early.push(data);
      } else {
        this.inside.dispatchEvent(new MessageEvent("message", { data }));
      }
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
