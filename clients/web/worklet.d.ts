/** What exists only on the audio thread; TypeScript's DOM library does not have it. */
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
  abstract process(inputs: Float32Array[][], outputs: Float32Array[][], parameters: Record<string, Float32Array>): boolean;
}

declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

/** Rate of the audio context, in Hz. */
declare const sampleRate: number;
