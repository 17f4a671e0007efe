// The golden vectors (clients/vectors) that the clients over queues and over HTTP, in TypeScript and in Python, all run.
import { readFileSync } from 'node:fs'

/** `name`: of the file, without its ending. */
export function readVectors<Content>(name: string): Content {
  return JSON.parse(readFileSync(new URL(`../../clients/vectors/${name}.json`, import.meta.url), 'utf8')) as Content
}
