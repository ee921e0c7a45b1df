// Points the providers of the coding agent pi at a Continuo server. Written by continuo launch pi.
export default function (pi: any) {
  const base = process.env.PI_CONTINUO_URL;
  if (!base) return;
  pi.registerProvider("openai", { baseUrl: base + "/v1" });
  pi.registerProvider("anthropic", { baseUrl: base });
  pi.registerProvider("google", { baseUrl: base + "/v1beta" });
}
