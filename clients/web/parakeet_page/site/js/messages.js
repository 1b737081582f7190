/**
 * The messages of the protocol that the page uses; docs/protocol.md has all of them.
 *
 * @typedef {{ text: string, start_ms: number, end_ms: number, confidence: number }} Word
 *
 * @typedef {object} Ready
 * @property {"ready"} type
 * @property {string} session
 * @property {string} model
 * @property {string | null} resume_token
 * @property {number} resume_window_ms
 * @property {boolean} resumed
 * @property {number} audio_bytes
 * @property {number} controls
 *
 * @typedef {object} Partial
 * @property {"partial"} type
 * @property {number} seq
 * @property {number} utterance
 * @property {string} text
 * @property {Word[]} words
 * @property {number} audio_ms
 *
 * @typedef {object} Final
 * @property {"final"} type
 * @property {number} seq
 * @property {number} utterance
 * @property {string} text
 * @property {string | null} [formatted]
 * @property {Word[]} words
 * @property {number} audio_ms
 * @property {string} reason
 *
 * @typedef {{ type: "eou" | "resumed", seq: number, utterance: number, audio_ms: number }} TurnMark
 * @typedef {{ type: "speech_started", seq: number, audio_ms: number }} SpeechStarted
 * @typedef {{ type: "queued", position: number, estimated_wait_ms: number | null, max_wait_ms: number }} Queued
 * @typedef {{ type: "ack", audio_bytes: number, audio_ms: number, controls: number }} Ack
 * @typedef {{ type: "warning", code: string, message: string, details: Record<string, number> }} Warning
 * @typedef {{ type: "done", seq: number, audio_ms: number, utterances: number, reason: string }} Done
 *
 * @typedef {object} ErrorMessage
 * @property {"error"} type
 * @property {number | null} [seq]
 * @property {string} code
 * @property {string} message
 * @property {boolean} fatal
 * @property {number | null} [retry_after]
 *
 * @typedef {Ready | Partial | Final | TurnMark | SpeechStarted | Queued | Ack | Warning | Done | ErrorMessage} ServerMessage
 */

export {};
