/** What was said, as it is known now, and its written forms. No page, no sockets. */

/**
 * @typedef {object} Utterance
 * @property {string} id unique in the transcript
 * @property {string} text as it is read: formatted if the server formats
 * @property {string} raw
 * @property {import("./messages.js").Word[]} words times in milliseconds since the start
 * @property {boolean} final
 * @property {boolean} paused the end was heard, and may yet prove to be a pause
 * @property {string} reason why it ended, empty while it has not
 */

export class Transcript {
  constructor() {
    /** @type {Utterance[]} */
    this.utterances = [];
    this.session = 0;
  }

  /**
   * Take a message; others than results change nothing.
   * @param {import("./messages.js").ServerMessage} message
   * @param {number} offsetMs where its session begins
   * @returns {Utterance | null} the utterance that changed
   */
  apply(message, offsetMs) {
    if (message.type === "partial" || message.type === "final") {
      const utterance = this.utterance(message.utterance);
      utterance.raw = message.text;
      utterance.text = (message.type === "final" && message.formatted) || message.text;
      utterance.words = message.words.map((word) => ({
        ...word,
        start_ms: word.start_ms + offsetMs,
        end_ms: word.end_ms + offsetMs,
      }));
      utterance.final = message.type === "final";
      utterance.reason = message.type === "final" ? message.reason : "";
      utterance.paused = false;
      if (utterance.final && utterance.raw === "") {
        this.utterances = this.utterances.filter((other) => other !== utterance);
      }
      return utterance;
    }
    if (message.type === "eou" || message.type === "resumed") {
      const utterance = this.utterance(message.utterance);
      utterance.paused = message.type === "eou";
      return utterance;
    }
    return null;
  }

  /**
   * A session that knows nothing takes over: what was not final comes anew.
   * @returns {Utterance[]} what was taken back
   */
  restart() {
    this.session += 1;
    const open = this.utterances.filter((utterance) => !utterance.final);
    this.utterances = this.utterances.filter((utterance) => utterance.final);
    return open;
  }

  /** @returns {Utterance[]} */
  get finals() {
    return this.utterances.filter((utterance) => utterance.final);
  }

  /** @returns {string} one line for each utterance */
  toText() {
    return this.finals.map(({ text }) => `${text}\n`).join("");
  }

  /** @returns {string} SubRip */
  toSrt() {
    return this.finals
      .map((utterance, at) => `${at + 1}\n${cueTimes(utterance, ",")}\n${utterance.text}\n\n`)
      .join("");
  }

  /** @returns {string} WebVTT */
  toVtt() {
    return `WEBVTT\n\n${this.finals.map((utterance) => `${cueTimes(utterance, ".")}\n${utterance.text}\n\n`).join("")}`;
  }

  /** @returns {string} */
  toJson() {
    const utterances = this.finals.map(({ text, raw, words, reason }) => ({ text, raw, words, reason }));
    return `${JSON.stringify({ utterances }, null, 2)}\n`;
  }

  /**
   * @param {number} number in its session
   * @returns {Utterance}
   */
  utterance(number) {
    const id = `${this.session}-${number}`;
    let found = this.utterances.find((utterance) => utterance.id === id);
    if (!found) {
      found = { id, text: "", raw: "", words: [], final: false, paused: false, reason: "" };
      this.utterances.push(found);
    }
    return found;
  }
}

/**
 * @param {number} ms
 * @param {string} point between seconds and milliseconds
 * @returns {string} hours:minutes:seconds
 */
export function clock(ms, point) {
  const part = (/** @type {number} */ value, /** @type {number} */ digits) => String(value).padStart(digits, "0");
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${part(hours, 2)}:${part(minutes, 2)}:${part(seconds % 60, 2)}${point}${part(ms % 1000, 3)}`;
}

/**
 * @param {Utterance} utterance
 * @param {string} point
 * @returns {string}
 */
function cueTimes({ words }, point) {
  return `${clock(words[0]?.start_ms ?? 0, point)} --> ${clock(words.at(-1)?.end_ms ?? 0, point)}`;
}
