/**
 * Runs on the browser's audio thread: whatever rate and channels the device has become frames of 16 kHz PCM.
 *
 * Takes the messages "pause", "resume" and "flush"; posts every frame, and `{ flushed: true }` after a flush.
 */

import { FrameWriter } from "./frames.js";
import { Resampler } from "./resampler.js";

class CaptureProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate);
    this.writer = new FrameWriter();
    this.paused = false;
    this.over = false;
    this.port.onmessage = ({ data }) => this.command(data);
  }

  /** @param {unknown} name */
  command(name) {
    if (name === "flush") {
      this.over = true;
      this.post(this.writer.push(this.resampler.flush()));
      this.post(this.writer.flush());
      this.port.postMessage({ flushed: true });
    } else {
      this.paused = name === "pause";
      if (this.paused) {
        this.post(this.writer.flush());
      }
    }
  }

  /**
   * @param {Float32Array[][]} inputs
   * @returns {boolean} false once the processor is no longer needed
   */
  process(inputs) {
    const channels = inputs[0] ?? [];
    if (!this.over && !this.paused && channels.length > 0) {
      this.post(this.writer.push(this.resampler.push(mean(channels))));
    }
    return !this.over;
  }

  /** @param {import("./frames.js").Frame[]} frames */
  post(frames) {
    for (const frame of frames) {
      this.port.postMessage(frame, [frame.pcm]);
    }
  }
}

/**
 * @param {Float32Array[]} channels of equal length
 * @returns {Float32Array}
 */
function mean(channels) {
  const first = /** @type {Float32Array} */ (channels[0]);
  if (channels.length === 1) {
    return first;
  }
  return first.map((_, at) => channels.reduce((sum, channel) => sum + (channel[at] ?? 0), 0) / channels.length);
}

registerProcessor("parakeet-capture", CaptureProcessor);
