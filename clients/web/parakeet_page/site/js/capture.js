/** Where audio comes from: a microphone, or a file. Usable without the rest of the page. */

import { FrameWriter } from "./frames.js";
import { TARGET_RATE } from "./resampler.js";

/** Audio must arrive within this time, or something between the device and the page is asleep. */
const SILENT_AFTER_MS = 1000;
/** An audio thread that has gone to sleep never answers. */
const FLUSH_TIMEOUT_MS = 500;
/** Frames that are offered at once between two looks at the time, when a file is sent. */
const FILE_FRAMES = 25;

/** A reason for a person why there is no audio; `code` is for programs. */
export class CaptureError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "CaptureError";
    this.code = code;
  }
}

/**
 * @typedef {object} MicrophoneOptions
 * @property {string} [deviceId] as of {@link listMicrophones}; the system's choice without
 * @property {(frame: import("./frames.js").Frame) => void} onFrame
 * @property {(error: CaptureError) => void} [onProblem] the microphone fell silent or was unplugged
 */

/** One use of a microphone: start it in a click, stop it once. */
export class Microphone {
  /** @param {MicrophoneOptions} options */
  constructor(options) {
    this.options = options;
    this.stopped = false;
    /** @type {AudioContext | undefined} */
    this.context = undefined;
    /** @type {MediaStream | undefined} */
    this.stream = undefined;
    /** @type {AudioWorkletNode | undefined} */
    this.node = undefined;
    this.heard = false;
  }

  /**
   * Ask for the microphone and begin. Call it from a click or key press: browsers keep audio asleep otherwise.
   * @returns {Promise<boolean>} false if {@link stop} was called before permission was given
   * @throws {CaptureError}
   */
  async start() {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new CaptureError(
        "insecure",
        "This browser gives a page the microphone only over https or on localhost. Open the page by https, " +
          "through a tunnel (ssh -L), or on the machine of the server itself.",
      );
    }
    // The context runs at the rate of the device: some browsers refuse to connect a microphone to any other.
    const context = new AudioContext({ latencyHint: "interactive" });
    this.context = context;
    const awake = context.resume();
    try {
      const audio = {
        ...(this.options.deviceId ? { deviceId: { exact: this.options.deviceId } } : {}),
        channelCount: { ideal: 1 },
        // What is made for telephony harms recognition; only the level is helped.
        echoCancellation: false,
        noiseSuppression: false,
        autoGainControl: true,
      };
      this.stream = await navigator.mediaDevices.getUserMedia({ audio });
      await awake;
      if (!this.stopped) {
        await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
      }
    } catch (error) {
      await this.release();
      throw problemOf(error);
    }
    if (this.stopped) {
      await this.release();
      return false;
    }
    this.connect(context, this.stream);
    return true;
  }

  /** No frames until {@link resume}; the device stays open. */
  pause() {
    this.node?.port.postMessage("pause");
  }

  resume() {
    this.node?.port.postMessage("resume");
  }

  /** Give the device back. Everything captured before the call has been given to `onFrame` when it returns. */
  async stop() {
    if (this.stopped) {
      return;
    }
    this.stopped = true;
    const node = this.node;
    if (node && this.context?.state === "running") {
      await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
        this.onFlushed = resolve;
        node.port.postMessage("flush");
        setTimeout(resolve, FLUSH_TIMEOUT_MS);
      });
    }
    await this.release();
  }

  /**
   * @param {AudioContext} context
   * @param {MediaStream} stream
   */
  connect(context, stream) {
    const node = new AudioWorkletNode(context, "parakeet-capture", { numberOfOutputs: 0 });
    this.node = node;
    node.port.onmessage = ({ data }) => {
      if (data.flushed) {
        this.onFlushed?.();
      } else {
        this.heard = true;
        this.options.onFrame(data);
      }
    };
    context.createMediaStreamSource(stream).connect(node);
    for (const track of stream.getAudioTracks()) {
      track.addEventListener("ended", () => {
        this.report("unplugged", "The microphone was unplugged or taken away. Choose another and start again.");
      });
    }
    setTimeout(() => {
      if (!this.heard) {
        this.report(
          "silent",
          "No sound arrives from the microphone. Press stop and start again; if that does not help, choose another.",
        );
      }
    }, SILENT_AFTER_MS);
  }

  /**
   * @param {string} code
   * @param {string} message
   */
  report(code, message) {
    if (!this.stopped) {
      this.options.onProblem?.(new CaptureError(code, message));
    }
  }

  async release() {
    for (const track of this.stream?.getTracks() ?? []) {
      track.stop();
    }
    if (this.context && this.context.state !== "closed") {
      await this.context.close();
    }
  }
}

/**
 * Microphones of this machine. Browsers tell their names only after permission was given once.
 * @returns {Promise<{ id: string, name: string }[]>}
 */
export async function listMicrophones() {
  const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return devices
    .filter((device) => device.kind === "audioinput" && device.deviceId)
    .map((device, at) => ({ id: device.deviceId, name: device.label || `Microphone ${at + 1}` }));
}

/**
 * The frames of an audio file, in any format that the browser can decode.
 * @param {Blob} file
 * @returns {AsyncGenerator<import("./frames.js").Frame[]>} a second at a time
 * @throws {CaptureError}
 */
export async function* fileFrames(file) {
  const context = new OfflineAudioContext(1, 1, TARGET_RATE);
  let audio;
  try {
    audio = await context.decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new CaptureError(
      "undecodable",
      "The browser cannot decode this file. Convert it first: ffmpeg -i FILE -ac 1 -ar 16000 out.wav",
    );
  }
  const writer = new FrameWriter();
  const channels = Array.from({ length: audio.numberOfChannels }, (_, at) => audio.getChannelData(at));
  const second = FILE_FRAMES * writer.samples.length;
  for (let start = 0; start < audio.length; start += second) {
    const length = Math.min(second, audio.length - start);
    const mixed = new Float32Array(length);
    for (const channel of channels) {
      for (let at = 0; at < length; at += 1) {
        mixed[at] = (mixed[at] ?? 0) + (channel[start + at] ?? 0) / channels.length;
      }
    }
    yield writer.push(mixed);
  }
  yield writer.flush();
}

/**
 * @param {unknown} error of getUserMedia or of the audio context
 * @returns {CaptureError}
 */
function problemOf(error) {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") {
    return new CaptureError(
      "denied",
      "The microphone is not allowed for this page. Allow it in the address bar's site settings, then press start again.",
    );
  }
  if (name === "NotFoundError" || name === "OverconstrainedError") {
    return new CaptureError("missing", "There is no such microphone. Plug one in or choose another.");
  }
  if (name === "NotReadableError" || name === "AbortError") {
    return new CaptureError("busy", "The microphone does not open; another program may be using it.");
  }
  return new CaptureError("failed", `The microphone does not start: ${error instanceof Error ? error.message : error}`);
}
