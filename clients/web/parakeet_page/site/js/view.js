/** What the page shows. It reads nothing but what it is given, and remembers only its elements. */

import { clock } from "./transcript.js";

/** @type {Record<string, string>} */
const REASONS = {
  eou: "end of turn",
  backchannel: "acknowledgement",
  silence: "silence",
  vad: "silence",
  max_length: "longest utterance",
  finalize: "asked for",
  no_audio: "no more audio",
  end: "end of stream",
};

/** Whoever has scrolled up further than this is reading, and is left in peace. */
const NEAR_END_PX = 160;

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`the page has no #${id}`);
  }
  return found;
}

export class TranscriptView {
  /**
   * @param {HTMLElement} list an ordered list
   * @param {HTMLElement} frame in which it scrolls
   */
  constructor(list, frame) {
    this.list = list;
    this.frame = frame;
    /** @type {Map<string, HTMLElement>} */
    this.items = new Map();
  }

  /** @param {import("./transcript.js").Utterance} utterance */
  show(utterance) {
    const item = this.items.get(utterance.id) ?? this.add(utterance.id);
    const text = /** @type {HTMLElement} */ (item.querySelector(".text"));
    const time = /** @type {HTMLTimeElement} */ (item.querySelector("time"));
    const start = utterance.words[0]?.start_ms;
    if (start !== undefined) {
      time.textContent = clock(start, ".").slice(3, 10);
      time.dateTime = `PT${(start / 1000).toFixed(3)}S`;
    }
    item.classList.toggle("paused", utterance.paused);
    if (utterance.final) {
      this.lock(item, text, utterance);
    } else if (utterance.raw.startsWith(text.textContent ?? "")) {
      // Partials only grow: adding to the text node leaves what is read already untouched.
      text.append(utterance.raw.slice((text.textContent ?? "").length));
      text.normalize();
    } else {
      text.textContent = utterance.raw;
    }
    this.follow();
  }

  /** @param {import("./transcript.js").Utterance} utterance */
  remove(utterance) {
    this.items.get(utterance.id)?.remove();
    this.items.delete(utterance.id);
  }

  clear() {
    this.list.replaceChildren();
    this.items.clear();
  }

  /**
   * @param {string} id
   * @returns {HTMLElement}
   */
  add(id) {
    const item = document.createElement("li");
    item.className = "partial";
    const time = document.createElement("time");
    const text = document.createElement("span");
    text.className = "text";
    const end = document.createElement("span");
    end.className = "end";
    // Read out when it is final, not at every word.
    item.setAttribute("aria-busy", "true");
    item.append(time, text, end);
    this.list.append(item);
    this.items.set(id, item);
    return item;
  }

  /**
   * @param {HTMLElement} item
   * @param {HTMLElement} text
   * @param {import("./transcript.js").Utterance} utterance
   */
  lock(item, text, utterance) {
    if (utterance.raw === "") {
      this.remove(utterance);
      return;
    }
    item.classList.replace("partial", "final");
    item.removeAttribute("aria-busy");
    if (utterance.text === utterance.raw) {
      text.replaceChildren(...utterance.words.flatMap((word, at) => [...(at ? [" "] : []), shaded(word)]));
    } else {
      text.textContent = utterance.text;
      text.title = utterance.raw;
    }
    const end = /** @type {HTMLElement} */ (item.querySelector(".end"));
    end.textContent = REASONS[utterance.reason] ?? utterance.reason;
  }

  follow() {
    const { scrollHeight, scrollTop, clientHeight } = this.frame;
    if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX) {
      this.frame.scrollTop = scrollHeight;
    }
  }
}

/**
 * A word whose look tells how sure the recogniser is: the number is there for those who cannot see it.
 * @param {import("./messages.js").Word} word
 * @returns {HTMLElement}
 */
function shaded(word) {
  const span = document.createElement("span");
  span.textContent = word.text;
  span.title = `${(word.start_ms / 1000).toFixed(2)} s, ${Math.round(100 * word.confidence)} % sure`;
  span.className = word.confidence < 0.5 ? "doubtful" : word.confidence < 0.8 ? "unsure" : "";
  return span;
}
