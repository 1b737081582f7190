/** How long text takes: from sending the audio that it covers to its arrival. Takes the time from outside. */

/** Marks that are kept; older ones no result refers to. */
const KEPT = 4096;

export class LatencyMeter {
  constructor() {
    /** @type {{ audioMs: number, at: number }[]} */
    this.sent = [];
  }

  /**
   * @param {number} audioMs sent in all
   * @param {number} at a monotonic time in milliseconds
   */
  mark(audioMs, at) {
    this.sent.push({ audioMs, at });
    if (this.sent.length > KEPT) {
      this.sent.splice(0, KEPT / 2);
    }
  }

  /**
   * @param {number} audioMs that a result covers
   * @param {number} at its arrival
   * @returns {number | null} milliseconds; null if it is not known when that audio was sent
   */
  of(audioMs, at) {
    const mark = this.sent.find((candidate) => candidate.audioMs >= audioMs);
    return mark ? Math.max(0, Math.round(at - mark.at)) : null;
  }
}
