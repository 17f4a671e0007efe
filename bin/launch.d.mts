export const HEAP_FLAGS: string[]
export function launch(script: string, args: string[]): void
