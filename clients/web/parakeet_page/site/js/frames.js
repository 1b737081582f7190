/** Samples to the frames that go over the wire: 16-bit little-endian PCM, one channel, 16 kHz. */

import { TARGET_RATE } from "./resampler.js";

/** Audio in one frame. Few enough messages for the server, little enough delay for the speaker. */
export const FRAME_MS = 40;
export const FRAME_SAMPLES = (TARGET_RATE * FRAME_MS) / 1000;
export const BYTES_PER_MS = (TARGET_RATE * 2) / 1000;

/**
 * @typedef {object} Frame
 * @property {ArrayBuffer} pcm 16-bit samples
 * @property {number} peak largest magnitude in it, 0 to 1
 */

/** Collects samples until a frame is full. */
export class FrameWriter {
  constructor() {
    this.samples = new Int16Array(FRAME_SAMPLES);
    this.filled = 0;
    this.peak = 0;
  }

  /**
   * @param {Float32Array} samples at 16 kHz, -1 to 1
   * @returns {Frame[]} the frames they complete
   */
  push(samples) {
    /** @type {Frame[]} */
    const frames = [];
    for (const sample of samples) {
      const clipped = Math.max(-1, Math.min(1, sample));
      this.samples[this.filled] = Math.round(clipped * 32767);
      this.peak = Math.max(this.peak, Math.abs(clipped));
      this.filled += 1;
      if (this.filled === FRAME_SAMPLES) {
        frames.push(...this.flush());
      }
    }
    return frames;
  }

  /** @returns {Frame[]} what there is, as a shorter frame; none if there is nothing */
  flush() {
    if (this.filled === 0) {
      return [];
    }
    const frame = { pcm: this.samples.slice(0, this.filled).buffer, peak: this.peak };
    this.filled = 0;
    this.peak = 0;
    return [frame];
  }
}
