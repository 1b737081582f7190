/**
 * Continuous sample-rate conversion to the rate the server works at.
 *
 * A polyphase filter: a windowed sinc (Kaiser window) sampled at every phase that the ratio of the two rates can take,
 * so any pair of whole rates is exact and nothing drifts. Source: J. O. Smith, "Digital Audio Resampling".
 */

/** Rate of the audio that is sent, in Hz. */
export const TARGET_RATE = 16000;

/** Zero crossings of the sinc on each side: 32 give 80 dB of stop band with the window below. */
const ZERO_CROSSINGS = 32;
const KAISER_BETA = 8;
/** Share of the lower Nyquist frequency that passes; the rest is the transition band. */
const PASS_BAND = 0.93;

export class Resampler {
  /** @param {number} rate of the input, in Hz, a whole number */
  constructor(rate) {
    const divisor = greatestCommonDivisor(rate, TARGET_RATE);
    this.up = TARGET_RATE / divisor;
    this.down = rate / divisor;
    const ratio = Math.min(1, this.up / this.down);
    this.half = Math.ceil(ZERO_CROSSINGS / (ratio * PASS_BAND));
    this.phases = polyphase(this.up, this.half, (ratio * PASS_BAND) / 2);
    /** Input not yet used up, beginning `half - 1` samples before the next output's position. */
    this.held = new Float32Array(this.half - 1);
    /** Phase of the next output, in 1/up of an input sample. */
    this.phase = 0;
  }

  /**
   * @param {Float32Array} input samples at the input's rate, any number
   * @returns {Float32Array} what can be said now at the target rate
   */
  push(input) {
    const { up, down, half, phases } = this;
    const samples = new Float32Array(this.held.length + input.length);
    samples.set(this.held);
    samples.set(input, this.held.length);
    const taps = 2 * half;
    /** @type {number[]} */
    const output = [];
    let position = 0;
    let phase = this.phase;
    while (position + taps <= samples.length) {
      const filter = /** @type {Float32Array} */ (phases[phase]);
      let sum = 0;
      for (let tap = 0; tap < taps; tap += 1) {
        sum += /** @type {number} */ (filter[tap]) * /** @type {number} */ (samples[position + tap]);
      }
      output.push(sum);
      phase += down;
      position += Math.floor(phase / up);
      phase %= up;
    }
    // A step is shorter than the filter, so the next position is never beyond what is there.
    this.held = samples.slice(position);
    this.phase = phase;
    return Float32Array.from(output);
  }

  /**
   * The end of the input: what the filter still holds.
   * @returns {Float32Array}
   */
  flush() {
    return this.push(new Float32Array(this.half));
  }
}

/**
 * @param {number} up phases
 * @param {number} half taps on each side
 * @param {number} cutoff in cycles per input sample
 * @returns {Float32Array[]} per phase the taps for the samples from `half - 1` before the position on
 */
function polyphase(up, half, cutoff) {
  const scale = besselI0(KAISER_BETA);
  return Array.from({ length: up }, (_, phase) => {
    const taps = new Float32Array(2 * half);
    let total = 0;
    for (let tap = 0; tap < taps.length; tap += 1) {
      const distance = tap - (half - 1) - phase / up;
      const across = distance / half;
      const angle = 2 * Math.PI * cutoff * distance;
      const sinc = angle === 0 ? 1 : Math.sin(angle) / angle;
      const window = Math.abs(across) > 1 ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - across * across)) / scale;
      const value = 2 * cutoff * sinc * window;
      taps[tap] = value;
      total += value;
    }
    // Every phase passes a constant unchanged, or a steady level would become a tone.
    return taps.map((value) => value / total);
  });
}

/**
 * Modified Bessel function of the first kind, order zero, by its power series.
 * @param {number} x
 */
function besselI0(x) {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/**
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
