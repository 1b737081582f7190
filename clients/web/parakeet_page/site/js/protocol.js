/**
 * One stream of audio to the server and its results, over as many connections as it takes. Usable without the page.
 *
 *     const stream = new LiveStream("wss://host/v1/stream", { onMessage: console.log });
 *     stream.send(pcm);          // ArrayBuffer of 16-bit samples at 16 kHz
 *     stream.end();              // the last finals and "done" still come
 */

import { AudioLog, KEPT_MS } from "./audio-log.js";
import { BYTES_PER_MS } from "./frames.js";

/** Bytes on their way beyond which {@link LiveStream.writable} waits: half a second of audio. */
const HIGH_WATER = 500 * BYTES_PER_MS;
const WRITABLE_CHECK_MS = 20;
const RETRY_MS = [100, 250, 500, 1000, 2000];
/** How long a server may be away before the stream is given up; its session may be gone earlier. */
const GIVE_UP_MS = 60_000;
/** Audio before an acknowledgement in which a word may have begun that no partial shows yet. */
const UNHEARD_MS = 3000;
/** Commands are small and rare; a quiet connection is kept open by one of them. */
const KEEPALIVE_MS = 15_000;

/**
 * @typedef {"connecting" | "queued" | "open" | "reconnecting" | "closed"} State
 *
 * @typedef {object} Failure
 * @property {string} code as in docs/protocol.md, or "unreachable", "lost"
 * @property {string} message for a person
 * @property {number | null} [retryAfter] seconds
 *
 * @typedef {object} StreamOptions
 * @property {Record<string, string>} [query] parameters of the URL, such as endpointing
 * @property {string[]} [protocols] WebSocket subprotocols, for a key
 * @property {(message: import("./messages.js").ServerMessage, offsetMs: number) => void} [onMessage]
 *   every message once, in order; `offsetMs` is where its session begins in the audio sent
 * @property {(state: State) => void} [onState]
 * @property {(offsetMs: number) => void} [onRestart] the server forgot the session; text after the last final comes anew
 * @property {(failure: Failure | null) => void} [onClose] the stream is over: null if as it should
 */

export class LiveStream {
  /**
   * @param {string} url of /v1/stream, ws: or wss:
   * @param {StreamOptions} [options]
   */
  constructor(url, options = {}) {
    this.url = url;
    this.options = options;
    /** @type {State} */
    this.state = "connecting";
    this.log = new AudioLog();
    this.seen = 0;
    this.offsetMs = 0;
    this.ended = false;
    this.attempts = 0;
    this.everReady = false;
    this.lostAt = 0;
    /** Settings changed since the start, for a session that must begin anew. @type {Record<string, string>} */
    this.settings = {};
    /** The server is in the middle of an utterance. */
    this.speaking = false;
    /** @type {string | null} */
    this.token = null;
    /** @type {Failure | null} */
    this.failure = null;
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    this.ready = false;
    this.keepalive = setInterval(() => this.ready && this.transmit('{"type":"keepalive"}'), KEEPALIVE_MS);
    this.connect();
  }

  /** Milliseconds of audio given to {@link send}. */
  get sentMs() {
    return this.log.end / BYTES_PER_MS;
  }

  /** @param {ArrayBuffer} pcm 16-bit little-endian samples, one channel, 16 kHz */
  send(pcm) {
    if (this.state === "closed" || this.ended || pcm.byteLength === 0) {
      return;
    }
    if (this.log.full) {
      this.close({
        code: "lost",
        message: `The server took no audio for ${KEPT_MS / 1000} seconds; what was said meanwhile is lost.`,
      });
      return;
    }
    this.log.audio(pcm);
    this.transmit(pcm);
  }

  /** Ask for a final now; the stream goes on. */
  finalize() {
    this.command('{"type":"finalize"}');
  }

  /** No more audio. */
  end() {
    this.command('{"type":"end"}');
    this.ended = true;
  }

  /** @param {Record<string, string>} settings of the ends of turns, and format; they hold from here on */
  configure(settings) {
    this.settings = { ...this.settings, ...settings };
    this.command(JSON.stringify({ type: "configure", ...settings }));
  }

  /** Return when more audio can be sent without piling up, or the stream is over. */
  async writable() {
    while (
      this.state !== "closed" &&
      (!this.ready || this.log.full || (this.socket?.bufferedAmount ?? 0) > HIGH_WATER)
    ) {
      await new Promise((resolve) => setTimeout(resolve, WRITABLE_CHECK_MS));
    }
  }

  /**
   * Give up at once; nothing more is reported.
   * @param {Failure | null} [failure]
   */
  close(failure = null) {
    if (this.state === "closed") {
      return;
    }
    clearInterval(this.keepalive);
    this.ready = false;
    this.setState("closed");
    this.socket?.close(1000);
    this.options.onClose?.(failure);
  }

  connect() {
    const url = new URL(this.url);
    const query = { ...this.options.query, ...this.settings };
    if (this.token) {
      Object.assign(query, { resume: this.token, seen: String(this.seen) });
    }
    for (const [name, value] of Object.entries(query)) {
      url.searchParams.set(name, value);
    }
    const socket = new WebSocket(url, this.options.protocols ?? []);
    this.socket = socket;
    socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
    socket.onclose = () => {
      if (socket === this.socket) {
        this.disconnected();
      }
    };
  }

  disconnected() {
    this.ready = false;
    if (this.state === "closed") {
      return;
    }
    if (this.failure) {
      this.close(this.failure);
      return;
    }
    if (!this.everReady) {
      this.close({ code: "unreachable", message: `No connection to ${this.url}. Is the server running?` });
      return;
    }
    if (this.state !== "reconnecting") {
      this.lostAt = performance.now();
      this.attempts = 0;
      this.setState("reconnecting");
    } else if (performance.now() - this.lostAt > GIVE_UP_MS) {
      this.close({ code: "lost", message: "The connection was lost and could not be made again. Text so far is kept." });
      return;
    }
    const wait = RETRY_MS[Math.min(this.attempts, RETRY_MS.length - 1)] ?? 0;
    this.attempts += 1;
    setTimeout(() => this.state !== "closed" && this.connect(), wait);
  }

  /** @param {import("./messages.js").ServerMessage} message */
  receive(message) {
    if (this.state === "closed") {
      return;
    }
    switch (message.type) {
      case "ready":
        this.begin(message);
        break;
      case "queued":
        this.setState("queued");
        break;
      case "error":
        if (message.fatal && !this.recoverable(message.code)) {
          this.failure = { code: message.code, message: message.message, retryAfter: message.retry_after ?? null };
        }
        break;
      case "done":
        this.finish(message);
        return;
      default:
    }
    if ("seq" in message && typeof message.seq === "number") {
      // Results come once, whatever was on its way when the connection broke.
      if (message.seq <= this.seen) {
        return;
      }
      this.seen = message.seq;
    }
    this.options.onMessage?.(message, this.offsetMs);
    this.settle(message);
  }

  /**
   * Forget audio that will not have to be sent again, even to a server that knows nothing of the session.
   * @param {import("./messages.js").ServerMessage} message
   */
  settle(message) {
    if (message.type === "partial") {
      this.speaking = true;
    } else if (message.type === "final") {
      this.speaking = false;
      this.log.settled(message.audio_ms);
    } else if (message.type === "ack") {
      this.log.acknowledge(message.audio_bytes);
      if (!this.speaking) {
        this.log.settled(message.audio_ms - UNHEARD_MS);
      }
    }
  }

  /** @param {import("./messages.js").Ready} ready */
  begin(ready) {
    if (this.everReady && !ready.resumed) {
      this.seen = 0;
      this.speaking = false;
      this.offsetMs = this.log.restart();
      this.options.onRestart?.(this.offsetMs);
    }
    this.everReady = true;
    this.token = ready.resume_token;
    this.ready = true;
    this.setState("open");
    for (const data of this.log.since(ready.audio_bytes, ready.controls)) {
      this.transmit(data);
    }
  }

  /**
   * The session is over: as it should be if this side ended it, else a new one takes the rest.
   * @param {import("./messages.js").Done} done
   */
  finish(done) {
    this.options.onMessage?.(done, this.offsetMs);
    if (done.reason === "end" || this.ended) {
      this.close();
      return;
    }
    if (done.reason === "idle_timeout") {
      this.close({ code: done.reason, message: "Nothing was sent for long, so the server ended the session." });
      return;
    }
    this.token = null;
    this.log.settled(done.audio_ms);
  }

  /**
   * @param {string} code of a fatal error
   * @returns {boolean} true if a new session can take over
   */
  recoverable(code) {
    const forgotten = ["resume_failed", "engine_failed", "internal_error"].includes(code);
    const starting = this.state === "reconnecting" && ["draining", "not_ready", "server_full"].includes(code);
    if (forgotten) {
      this.token = null;
    }
    return forgotten || starting;
  }

  /** @param {string} text */
  command(text) {
    if (this.state !== "closed" && !this.ended) {
      this.log.control(text);
      this.transmit(text);
    }
  }

  /** @param {ArrayBuffer | string} data */
  transmit(data) {
    if (this.ready && this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(data);
    }
  }

  /** @param {State} state */
  setState(state) {
    if (state !== this.state) {
      this.state = state;
      this.options.onState?.(state);
    }
  }
}
