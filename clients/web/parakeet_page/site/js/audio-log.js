/**
 * The audio and commands of a stream that may have to be sent again. No sockets: positions are bytes since the start.
 *
 * A server that knows the session says how much it has received, and the rest is sent again. A server that does not
 * (it was restarted) starts at zero; then everything after the last final is sent to it, so that no word is lost.
 */

import { BYTES_PER_MS } from "./frames.js";

/** Audio that is kept at most: what the server has not acknowledged may be no more. */
export const KEPT_MS = 120_000;
const KEPT_BYTES = KEPT_MS * BYTES_PER_MS;

/** @typedef {{ at: number, data: ArrayBuffer | string }} Entry */

export class AudioLog {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    /** Bytes of audio put in. */
    this.end = 0;
    /** Bytes before the first one that is still here. */
    this.begin = 0;
    /** Bytes that the session is known to have. */
    this.acknowledged = 0;
    /** Position that is the session's zero. */
    this.base = 0;
    /** Commands of the session that are no longer here. */
    this.controlsBefore = 0;
  }

  /** @returns {boolean} true if audio that no server has would have to be dropped to take more */
  get full() {
    return this.end - Math.max(this.begin, this.acknowledged) >= KEPT_BYTES;
  }

  /** @param {ArrayBuffer} pcm */
  audio(pcm) {
    this.entries.push({ at: this.end, data: pcm });
    this.end += pcm.byteLength;
    if (this.end - this.begin > KEPT_BYTES) {
      this.drop(Math.min(this.acknowledged, this.end - KEPT_BYTES));
    }
  }

  /** @param {number} audioBytes of the session */
  acknowledge(audioBytes) {
    this.acknowledged = Math.max(this.acknowledged, this.base + audioBytes);
  }

  /** @param {string} text a command that the server counts: finalize, configure, cancel or end */
  control(text) {
    this.entries.push({ at: this.end, data: text });
  }

  /**
   * What the results of the session cover up to here need not be kept.
   * @param {number} audioMs of the session
   */
  settled(audioMs) {
    this.drop(this.base + audioMs * BYTES_PER_MS);
  }

  /** @param {number} position before which nothing is needed */
  drop(position) {
    let count = 0;
    for (const { at, data } of this.entries) {
      const after = typeof data === "string" ? at : at + data.byteLength;
      if (after > position) {
        break;
      }
      count += 1;
      if (typeof data === "string") {
        this.controlsBefore += 1;
      }
    }
    this.entries.splice(0, count);
    this.begin = this.entries[0]?.at ?? this.end;
  }

  /**
   * What a session lacks that has received this much.
   * @param {number} audioBytes
   * @param {number} controls
   * @returns {(ArrayBuffer | string)[]}
   */
  since(audioBytes, controls) {
    const position = this.base + audioBytes;
    let known = this.controlsBefore;
    /** @type {(ArrayBuffer | string)[]} */
    const missing = [];
    for (const { at, data } of this.entries) {
      if (typeof data === "string") {
        known += 1;
        if (known > controls) {
          missing.push(data);
        }
      } else if (at + data.byteLength > position) {
        missing.push(data.slice(Math.max(0, position - at)));
      }
    }
    return missing;
  }

  /**
   * The next session knows nothing: it begins with what is still here.
   * @returns {number} its zero in milliseconds since the start
   */
  restart() {
    this.base = this.begin;
    this.acknowledged = this.begin;
    this.controlsBefore = 0;
    return this.base / BYTES_PER_MS;
  }
}
