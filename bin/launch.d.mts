/** The command's script, from the root. */
export const MAIN: string
export const HEAP_FLAGS: string[]
export function launch(script: string, args: string[]): void
