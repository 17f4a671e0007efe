// Reads the proof that the module passkey.js writes into a form: JSON of a known shape.
import type { z } from 'zod'

/** Undefined if the text isn't of this shape. */
export function readProof<Shape extends z.ZodType>(text: string | undefined, shape: Shape): z.infer<Shape> | undefined {
  if (text === undefined) return undefined
  try {
    return shape.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
