// Search runs in a web worker, which browsers do not start from file://. There, run its script in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const scope = frame.contentWindow;
      const load = (address) =>
        new Promise((resolve) => {
          const script = scope.document.createElement("script");
          script.onload = resolve;
          script.src = address;
          scope.document.head.appendChild(script);
        });
      scope.importScripts = (...addresses) =>
        addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      load(url).then(() => {
        this.scope = scope;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.scope) this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
  };
}
