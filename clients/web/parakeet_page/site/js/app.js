/** The page: puts capture, protocol, transcript and view together. */

import { CaptureError, fileFrames, listMicrophones, Microphone } from "./capture.js";
import { LatencyMeter } from "./latency.js";
import { LiveStream } from "./protocol.js";
import { Transcript } from "./transcript.js";
import { element, TranscriptView } from "./view.js";

/** Decibels below full scale at which the level meter begins. */
const METER_FLOOR = -60;
const READOUT_MS = 250;
/** Latency beyond which recognition may be behind. */
const LAG_FROM_MS = 1000;

const ui = {
  start: element("start", HTMLButtonElement),
  pause: element("pause", HTMLButtonElement),
  file: element("file", HTMLInputElement),
  drop: element("drop", HTMLElement),
  device: element("device", HTMLSelectElement),
  preset: element("preset", HTMLSelectElement),
  punctuate: element("punctuate", HTMLInputElement),
  numerals: element("numerals", HTMLInputElement),
  key: element("key", HTMLInputElement),
  access: element("access", HTMLDetailsElement),
  level: element("level", HTMLMeterElement),
  status: element("status", HTMLElement),
  problem: element("problem", HTMLElement),
  latency: element("latency", HTMLElement),
  lag: element("lag", HTMLElement),
  audio: element("audio", HTMLElement),
  clear: element("clear", HTMLButtonElement),
  copy: element("copy", HTMLButtonElement),
  saves: document.querySelectorAll("button[data-save]"),
};
const view = new TranscriptView(element("transcript", HTMLElement), element("log", HTMLElement));
const transcript = new Transcript();
const url = `${location.origin.replace(/^http/, "ws")}/v1/stream`;

/** @type {{ stream: LiveStream, microphone?: Microphone } | null} */
let running = null;
/** The microphone whose permission is being asked for. @type {Microphone | null} */
let asking = null;
let paused = false;
let meter = new LatencyMeter();
/** How far recognition is behind what was said, in milliseconds, as far as is known. */
let lagMs = 0;
/** Audio of streams before the present one, so that times go on. */
let beforeMs = 0;

ui.start.addEventListener("click", () => (running || asking ? stop() : startMicrophone()));
ui.pause.addEventListener("click", togglePause);
ui.file.addEventListener("change", () => {
  const file = ui.file.files?.[0];
  ui.file.value = "";
  if (file) {
    startFile(file);
  }
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    ui.drop.classList.toggle("over", name === "dragover");
    const file = name === "drop" && event instanceof DragEvent && event.dataTransfer?.files[0];
    if (file) {
      startFile(file);
    }
  });
}
for (const control of [ui.preset, ui.punctuate, ui.numerals]) {
  control.addEventListener("change", () => running?.stream.configure(settings()));
}
ui.clear.addEventListener("click", () => {
  transcript.utterances = transcript.utterances.filter((utterance) => !utterance.final);
  view.clear();
  transcript.utterances.forEach((utterance) => view.show(utterance));
  showButtons();
});
ui.copy.addEventListener("click", async () => {
  await navigator.clipboard.writeText(transcript.toText());
  say("Copied.");
});
for (const button of ui.saves) {
  button.addEventListener("click", () => save(/** @type {HTMLElement} */ (button).dataset["save"] ?? "txt"));
}
navigator.mediaDevices?.addEventListener("devicechange", showDevices);
setInterval(showReadout, READOUT_MS);
showDevices();
showButtons();

/** @returns {Record<string, string>} */
function settings() {
  const format = [ui.punctuate, ui.numerals].filter((box) => box.checked).map((box) => box.value);
  return { endpointing: ui.preset.value, format: format.join(",") };
}

/** @param {string} text */
function say(text) {
  ui.status.textContent = text;
}

/** @param {string} text empty: none */
function complain(text) {
  ui.problem.textContent = text;
  ui.problem.hidden = text === "";
}

async function startMicrophone() {
  complain("");
  say("Waiting for the microphone…");
  const microphone = new Microphone({
    ...(ui.device.value ? { deviceId: ui.device.value } : {}),
    onFrame: ({ pcm, peak }) => {
      showLevel(peak);
      running?.stream.send(pcm);
      mark();
    },
    onProblem: (error) => complain(error.message),
  });
  asking = microphone;
  showButtons();
  try {
    if (!(await microphone.start())) {
      say("Stopped.");
      return;
    }
  } catch (error) {
    say("Not listening.");
    complain(error instanceof CaptureError ? error.message : String(error));
    return;
  } finally {
    if (asking === microphone) {
      asking = null;
    }
    showButtons();
  }
  // Only now: a page that waits for permission holds no place on the server.
  running = { stream: open(), microphone };
  showDevices();
  showButtons();
}

/** @param {File} file */
async function startFile(file) {
  await stop();
  complain("");
  say(`Reading ${file.name}…`);
  /** @type {LiveStream | null} */
  let stream = null;
  try {
    for await (const frames of fileFrames(file)) {
      stream ??= open();
      running = { stream };
      showButtons();
      for (const { pcm, peak } of frames) {
        await stream.writable();
        stream.send(pcm);
        showLevel(peak);
        mark();
      }
    }
  } catch (error) {
    say("Not listening.");
    complain(error instanceof CaptureError ? error.message : String(error));
  }
  stream?.end();
}

/** Everything said before this moment still becomes text. */
async function stop() {
  const { stream, microphone } = running ?? {};
  await asking?.stop();
  await microphone?.stop();
  stream?.end();
  showLevel(0);
}

function togglePause() {
  if (!running?.microphone) {
    return;
  }
  paused = !paused;
  if (paused) {
    running.microphone.pause();
    running.stream.finalize();
    say("Paused: nothing is heard or sent.");
    showLevel(0);
  } else {
    running.microphone.resume();
    say("Listening.");
  }
  showButtons();
}

/** @returns {LiveStream} */
function open() {
  meter = new LatencyMeter();
  lagMs = 0;
  paused = false;
  const base = beforeMs;
  const stream = new LiveStream(url, {
    query: Object.fromEntries(Object.entries(settings()).filter(([, value]) => value)),
    protocols: ui.key.value ? ["parakeet-live", `bearer.${ui.key.value}`] : [],
    onMessage: (message, offsetMs) => {
      const changed = transcript.apply(message, base + offsetMs);
      if (changed) {
        view.show(changed);
      }
      if (message.type === "partial" || message.type === "final") {
        const latency = meter.of(offsetMs + message.audio_ms, performance.now());
        ui.latency.textContent = latency === null ? "–" : `${latency} ms`;
        // A result that comes at once proves that nothing is waiting; the server warns when something is.
        lagMs = latency !== null && latency < LAG_FROM_MS ? 0 : lagMs;
        showButtons();
      } else if (message.type === "warning" || (message.type === "error" && !message.fatal)) {
        lagMs = (message.type === "warning" && message.details["lag_ms"]) || lagMs;
        complain(sentence(message.message));
      } else if (message.type === "queued") {
        say(`The server is full. You are number ${message.position} in the queue; keep talking, nothing is lost.`);
      }
    },
    onState: (state) => {
      if (state === "open") {
        say(paused ? "Paused: nothing is heard or sent." : "Listening.");
      } else if (state === "reconnecting") {
        say("Reconnecting… what you say is kept.");
      }
    },
    onRestart: () => transcript.restart().forEach((utterance) => view.remove(utterance)),
    onClose: (failure) => closed(stream, failure),
  });
  transcript.restart();
  say("Connecting…");
  return stream;
}

/**
 * @param {LiveStream} stream
 * @param {import("./protocol.js").Failure | null} failure
 */
function closed(stream, failure) {
  beforeMs += stream.sentMs;
  if (running?.stream === stream) {
    running.microphone?.stop();
    running = null;
  }
  paused = false;
  if (failure) {
    const again = failure.retryAfter ? ` Try again in ${failure.retryAfter} s.` : "";
    complain(sentence(failure.message) + again);
    ui.access.open ||= failure.code === "unauthorized";
    say("Not listening.");
  } else {
    say("Done.");
  }
  showLevel(0);
  showButtons();
}

/** @param {string} message of a server, which begins small and ends without a point */
function sentence(message) {
  return message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?]$/.test(message) ? "" : ".");
}

function mark() {
  if (running) {
    meter.mark(running.stream.sentMs, performance.now());
  }
}

/** @param {number} peak 0 to 1 */
function showLevel(peak) {
  ui.level.value = peak > 0 ? Math.max(METER_FLOOR, 20 * Math.log10(peak)) : METER_FLOOR;
}

function showReadout() {
  ui.lag.textContent = running ? `${(lagMs / 1000).toFixed(1)} s` : "–";
  ui.audio.textContent = running ? `${(running.stream.sentMs / 1000).toFixed(1)} s` : "–";
}

async function showDevices() {
  const chosen = ui.device.value;
  const devices = await listMicrophones();
  ui.device.replaceChildren(new Option("System default", ""));
  for (const { id, name } of devices) {
    ui.device.add(new Option(name, id, false, id === chosen));
  }
}

function showButtons() {
  const busy = running !== null || asking !== null;
  ui.start.textContent = busy ? "Stop" : "Start";
  ui.start.setAttribute("aria-pressed", String(busy));
  ui.pause.disabled = !running?.microphone;
  ui.pause.textContent = paused ? "Resume" : "Pause";
  ui.device.disabled = busy;
  ui.key.disabled = busy;
  const empty = transcript.finals.length === 0;
  ui.copy.disabled = empty;
  ui.clear.disabled = empty;
  for (const button of ui.saves) {
    /** @type {HTMLButtonElement} */ (button).disabled = empty;
  }
}

/** @param {string} kind */
function save(kind) {
  const content = { txt: () => transcript.toText(), srt: () => transcript.toSrt(), vtt: () => transcript.toVtt() };
  const text = kind in content ? content[/** @type {keyof content} */ (kind)]() : transcript.toJson();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind === "json" ? "application/json" : "text/plain" }));
  link.download = `transcript.${kind}`;
  link.click();
  URL.revokeObjectURL(link.href);
}
